import type { Operator } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import { jsonOption } from '../words/json-option.ts'
import { refuseInsideRun } from '../around/person.ts'
import { describeAsked } from './show-matter.ts'

export interface EditFlags {
  readonly input: string
  readonly digest?: string
  readonly note?: string
}

/** A person changes a call before it is done. What it becomes asks for a yes of its own. */
export async function editCall(operator: Operator, given: string, flags: EditFlags): Promise<number> {
  refuseInsideRun(operator)
  const { api, output } = operator
  const asked = await api.call('approvals.show', { approval: given })
  const { digest = asked.digest, note } = flags
  const edited = await api.call('approvals.edit', {
    approval: asked.id,
    input: jsonOption('--input', flags.input, '{"path": "notes.txt"}'),
    digest,
    ...(note === undefined ? {} : { note }),
  })
  output.result(edited, () => describeAsked(edited))
  output.note(`${edited.replaces} is replaced; nothing is done before \`holdfast approvals approve ${edited.id}\``)
  return EXIT.done
}
