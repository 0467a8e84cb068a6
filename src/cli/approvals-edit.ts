import { editApproval } from '../actions/edit.ts'
import { viewAsked } from '../actions/desk.ts'
import { taken } from '../actions/verdict.ts'
import { HoldfastError } from '../base/errors.ts'
import { editedCall } from '../loop/edit-call.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-code.ts'
import { theApproval } from './find.ts'
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
  const { id } = matter.approval
  const tool = await runtime.toolOf(matter.run.agent, matter.action.tool)
  const { digest = matter.approval.digest, note } = flags
  const edited = await runtime.store.apply(editApproval, id, {
    ...decider(),
    digest,
    action: editedCall(matter, tool, parsed(flags.input), runtime.random),
    ...(note === undefined ? {} : { note }),
    ...(runtime.config?.approvalMs === undefined ? {} : { expiresInMs: runtime.config.approvalMs }),
  })
  const { approval, action } = taken(matter.approval, edited, `\`holdfast approvals show ${id}\``)
  const after = { ...matter, approval, action }
  output.result({ ...viewAsked(after), replaces: id }, () => describeAsked(after))
  output.note(`${id} is replaced; nothing is done before \`holdfast approvals approve ${approval.id}\``)
  return EXIT.done
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    const remedy = `as in --input '{"path": "notes.txt"}'`
    throw new HoldfastError('usage/input', '--input is not JSON', { remedy, cause })
  }
}
