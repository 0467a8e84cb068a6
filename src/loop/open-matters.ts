import { openActionsOf } from '../actions/action.ts'
import type { Action } from '../actions/action.ts'
import type { ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { childrenAtWork } from '../runs/run.ts'
import type { Transition } from '../store/transition.ts'
import { clip } from './clip.ts'

/**
 * What a thread must not forget, whatever is left out of its history: children that have not ended, writes that nobody
 * knows the outcome of, actions that wait for a person. Read anew whenever it is shown, so that it is true then.
 */
export function* openMatters(threadId: ThreadId, generation: number): Transition<string> {
  const children = yield* childrenAtWork.single(threadId, LIMITS.openMatters + 1)
  const actions = yield* openActionsOf.single(threadId, generation, LIMITS.openMatters + 1)
  return [
    ...listed(children, ({ id, threadId: child, agent, state }) => `child ${child} (${agent}), run ${id}: ${state}`),
    ...listed(actions, openAction),
  ].join('\n')
}

const SHOWN = 300

function openAction({ id, tool, input, state, error }: Action): string {
  const call = `${tool} ${clip(JSON.stringify(input), SHOWN)} (${id})`
  if (state === 'waiting') return `waits for a decision: ${call}`
  return `in doubt, it may or may not have happened: ${call}: ${clip(error ?? 'it was cut off', SHOWN)}`
}

function listed<T>(found: readonly T[], words: (each: T) => string): string[] {
  const shown = found.slice(0, LIMITS.openMatters).map((each) => `- ${words(each)}`)
  return found.length > LIMITS.openMatters ? [...shown, '- and more of these'] : shown
}
