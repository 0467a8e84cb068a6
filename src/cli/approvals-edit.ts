import { editApproval } from '../actions/edit.ts'
import type { Edited } from '../actions/edit.ts'
import { viewAsked } from '../actions/desk.ts'
import type { AskedMatter } from '../actions/desk.ts'
import { HoldfastError } from '../base/errors.ts'
import { newActionId } from '../base/ids.ts'
import { checkEdit } from '../loop/reply.ts'
import type { CheckedEdit } from '../loop/reply.ts'
import type { Runtime } from '../runtime.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-code.ts'
import { theApproval } from '../control/find.ts'
import { decider, refuseInsideRun } from './person.ts'
import { describeAsked } from './show-matter.ts'

export interface EditFlags {
  readonly input: string
  readonly digest?: string
  readonly note?: string
}

/** A person changes a call before it is done. What it becomes asks for a yes of its own. */
export async function editCall(context: Context, given: string, flags: EditFlags): Promise<number> {
  refuseInsideRun(context)
  const { runtime, output } = context
  const matter = await theApproval(runtime.store, given)
  const checked = checkedInput(runtime, matter, parsed(flags.input))
  const { digest = matter.approval.digest, note } = flags
  const edited = await runtime.store.apply(editApproval, matter.approval.id, {
    ...decider(),
    digest,
    action: { id: newActionId(runtime.random), mark: runtime.random.hex(15), ...checked },
    ...(note === undefined ? {} : { note }),
    ...(runtime.config?.approvalMs === undefined ? {} : { expiresInMs: runtime.config.approvalMs }),
  })
  const { approval, action } = accepted(matter, edited)
  const after = { ...matter, approval, action }
  output.result({ ...viewAsked(after), replaces: matter.approval.id }, () => describeAsked(after))
  output.note(`${matter.approval.id} is replaced; nothing is done before \`holdfast approvals approve ${approval.id}\``)
  return EXIT.done
}

/** By the tool itself, which only the configuration knows. */
function checkedInput(runtime: Runtime, { action, run }: AskedMatter, input: unknown): CheckedEdit {
  const tool = runtime.toolsOf(run.agent)?.get(action.tool)
  if (tool === undefined) {
    throw new HoldfastError('approvals/no-tool', `the tool ${action.tool} of ${run.agent} is not known here`, {
      remedy:
        'use the configuration of the daemon (--config); tools of MCP servers cannot be changed so: skip the call',
    })
  }
  const checked = checkEdit(tool, input)
  if ('wrong' in checked) {
    throw new HoldfastError('usage/input', `${action.tool} does not take that: ${checked.wrong}`, {
      remedy: 'nothing was changed',
    })
  }
  return checked
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    const remedy = `as in --input '{"path": "notes.txt"}'`
    throw new HoldfastError('usage/input', '--input is not JSON', { remedy, cause })
  }
}

function accepted({ approval }: AskedMatter, edited: Edited): Extract<Edited, { kind: 'edited' }> {
  if (edited.kind === 'edited') return edited
  if (edited.kind === 'changed')
    throw new HoldfastError('approvals/changed', `${approval.id} is not what has that digest`, {
      remedy: `\`holdfast approvals show ${approval.id}\` shows what would run`,
    })
  const { state } = edited.kind === 'unknown' ? approval : edited.approval
  const how = state === 'pending' ? 'has expired' : `has been decided already: ${state}`
  throw new HoldfastError('approvals/too-late', `${approval.id} ${how}`, { remedy: 'nothing was changed' })
}
