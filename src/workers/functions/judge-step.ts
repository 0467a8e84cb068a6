import { findAction } from '../../actions/action.ts'
import { doubtAgain } from '../../actions/doubt.ts'
import { startAgain } from '../../actions/step-doubt.ts'
import { formatDuration } from '../../base/duration.ts'
import { describeError } from '../../base/errors.ts'
import type { RunId } from '../../base/ids.ts'
import { LIMITS } from '../../base/limits.ts'
import type { StepOptions } from '../../define/function.ts'
import { isUnderWay } from '../../define/owner.ts'
import type { ProbeAnswer } from '../../define/perform.ts'
import type { Step, StepsRef } from '../../runs/step.ts'
import { TOOL_LIMITS } from '../../tools/limits.ts'
import type { Executor } from '../execute.ts'
import { untilStored } from '../execute.ts'
import { endRivals } from '../rivals.ts'

/** A step that did not happen, in the record's words. */
export class StepFailed extends Error {
  readonly code: string = 'step/failed'
  constructor(name: string, error: string | null) {
    super(error ?? `step ${name} did not happen`)
  }
}

/** Nobody will ever know whether it happened, and somebody said to go on. */
class StepUnknown extends StepFailed {
  override readonly code = 'step/unknown'
}

/** What is known of a step that had begun before. */
export type Judged =
  | { readonly kind: 'done'; readonly result: unknown }
  | { readonly kind: 'failed'; readonly error: Error }
  /** Its record has changed since it was read. */
  | { readonly kind: 'settled'; readonly step: Step }
  /** It may be done again, by the same key. */
  | { readonly kind: 'restart' }
  /** A person wants it done again, and that has begun. */
  | { readonly kind: 'again'; readonly tries: number }
  | { readonly kind: 'doubt'; readonly error: string }
  /** It is listed, and nobody has said anything yet. */
  | { readonly kind: 'listed' }
  /** Its run was stopped, or waits for another step, before it was begun again. */
  | { readonly kind: 'left' }
  /** The run may not go on. */
  | { readonly kind: 'refused'; readonly why: 'cancel-requested' | 'superseded' }

export type JudgePorts = Pick<Executor, 'store' | 'clock' | 'warn'> & {
  readonly runId: RunId
  readonly signal: AbortSignal
  /** Whether the run was stopped meanwhile, or another step of it stands in the way. */
  readonly mayNotGoOn: () => boolean
}

export const keyOf = (runId: string, name: string) => `${runId}/${name}`

export const isNotDone = (error: unknown) => (error as { readonly code?: unknown } | null)?.code === 'tool/not-done'

export type AsJson =
  | { readonly kind: 'json'; readonly text: string | null }
  | { readonly kind: 'trouble'; readonly trouble: string }

/** What can be kept of a value, and is the same when it is read again. */
export function asJson(value: unknown): AsJson {
  if (value === undefined) return { kind: 'json', text: null }
  try {
    const text = JSON.stringify(value) as string | undefined
    if (text === undefined) return { kind: 'trouble', trouble: `it is not JSON but a ${typeof value}` }
    if (text.length > LIMITS.stepCharacters)
      return { kind: 'trouble', trouble: `it is longer than ${LIMITS.stepCharacters} characters` }
    return { kind: 'json', text }
  } catch (error) {
    return { kind: 'trouble', trouble: `it is not JSON: ${describeError(error)}` }
  }
}

export const notKept = (name: string, by: string | null, trouble: string) =>
  `what ${by === null ? `step ${name} returned` : `the probe of step ${name} said of it`} cannot be kept: ${trouble}`

/** A probe that breaks, or takes too long, has no answer. */
export async function askProbe(
  { clock, signal }: Pick<JudgePorts, 'clock' | 'signal'>,
  key: string,
  { probe }: StepOptions,
): Promise<ProbeAnswer & { readonly said?: string }> {
  if (probe === undefined) return { outcome: 'unknown' }
  const late = new AbortController()
  const { promise: tooLong, reject } = Promise.withResolvers<never>()
  const disarm = clock.after(
    TOOL_LIMITS.probeMs,
    () => {
      late.abort(new DOMException(`timed out after ${formatDuration(TOOL_LIMITS.probeMs)}`, 'TimeoutError'))
      reject(late.signal.reason)
    },
    { ref: true },
  )
  try {
    const answer = await Promise.race([probe({ key, signal: AbortSignal.any([signal, late.signal]) }), tooLong])
    return answer.outcome === 'unknown' ? { ...answer, said: '; its probe does not know' } : answer
  } catch (error) {
    return { outcome: 'unknown', said: `; its probe failed: ${describeError(error)}` }
  } finally {
    disarm()
  }
}

/**
 * Its worker was lost between its intent and its outcome. One that honours its key may be done again. Otherwise whoever could
 * still do it is ended first: before that, "not done" is not an answer but a moment.
 */
export async function judgeCutOff(ports: JudgePorts, known: Step, options: StepOptions): Promise<Judged> {
  if (options.idempotent === true) return { kind: 'restart' }
  const key = keyOf(ports.runId, known.name)
  const rival = await whoCouldStill(ports, key)
  const answer = await askProbe(ports, key, options)
  if (answer.outcome === 'done') return { kind: 'done', result: answer.result }
  if (answer.outcome === 'not_done' && rival === undefined) return { kind: 'restart' }
  const said = answer.outcome === 'not_done' ? '; its probe says that it is not done' : (answer.said ?? '')
  const who = rival === undefined ? '' : `; ${rival}`
  return { kind: 'doubt', error: `its worker was lost while it was under way${said}${who}` }
}

/** What the database cannot say just now is asked again: the function is not told of that. */
const whoCouldStill = async (ports: JudgePorts, key: string) =>
  isUnderWay(key)
    ? 'this very process had begun it, and has not ended it'
    : untilStored(ports, () => endRivals(ports.store, ports.clock, ports.runId))

/** It was in doubt when its run was parked. What a person says counts; "run it again" only when nobody else still can. */
export async function judgeDoubted(
  ports: JudgePorts,
  ref: StepsRef,
  known: Step,
  options: StepOptions,
): Promise<Judged> {
  const { store } = ports
  const { name, actionId } = known
  const action = actionId === null ? undefined : await untilStored(ports, () => store.read(findAction, actionId))
  if (action === undefined) return { kind: 'listed' }
  if (action.state === 'done') return { kind: 'done', result: action.result ?? undefined }
  if (action.state === 'failed') return { kind: 'failed', error: new StepFailed(name, action.error) }
  if (action.givenUp !== null)
    return {
      kind: 'failed',
      error: new StepUnknown(name, `nobody knows whether ${name} happened, as ${action.givenUp} says`),
    }
  if (action.state !== 'approved') return { kind: 'listed' }
  const key = keyOf(ports.runId, name)
  const rival = await whoCouldStill(ports, key)
  if (rival !== undefined) {
    await untilStored(ports, () => store.apply(doubtAgain, action, rival))
    return { kind: 'listed' }
  }
  // A person said so by what was seen then. Who could still do it is gone by now, and may have done it before that.
  const answer = await askProbe(ports, key, options)
  if (answer.outcome === 'done') return { kind: 'done', result: answer.result }
  if (ports.mayNotGoOn()) return { kind: 'left' }
  const again = await untilStored(ports, () => store.apply(startAgain, ref, action))
  return again.kind === 'settled' ? judgeDoubted(ports, ref, known, options) : again
}
