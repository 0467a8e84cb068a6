import type { AskedMatter } from '../actions/desk.ts'
import type { Edit } from '../actions/edit.ts'
import { HoldfastError } from '../base/errors.ts'
import { newActionId } from '../base/ids.ts'
import type { Randomness } from '../base/ids.ts'
import type { Tool } from './ports.ts'
import { checkEdit } from './reply.ts'

/** The call that a person wants instead, checked by the tool itself as if the model had made it. */
export function editedCall(
  { action, run }: AskedMatter,
  tool: Tool | undefined,
  input: unknown,
  random: Randomness,
): Edit['action'] {
  if (tool === undefined && run.input !== null) {
    throw new HoldfastError('approvals/no-tool', `${action.tool} is known inside of the function ${run.agent} alone`, {
      remedy: 'skip the call with a note that says what it should be instead: the model is told so, and calls again',
    })
  }
  if (tool === undefined) {
    throw new HoldfastError('approvals/no-tool', `the tool ${action.tool} of ${run.agent} is not known here`, {
      remedy: 'use the configuration of the worker that asked, or skip the call',
    })
  }
  const checked = checkEdit(tool, input)
  if ('wrong' in checked) {
    throw new HoldfastError('usage/input', `${action.tool} does not take that: ${checked.wrong}`, {
      remedy: 'nothing was changed',
    })
  }
  return { id: newActionId(random), mark: random.hex(15), ...checked }
}
