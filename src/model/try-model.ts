import type { Clock } from '../base/clock.ts'
import { describeError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import type { LanguageModel, ModelCallOptions, ModelReply, ModelRequest, ModelUsage } from '../loop/ports.ts'
import { ModelError } from './model-error.ts'
import { NO_USAGE } from '../loop/usage.ts'

export type Tried = (
  | { readonly kind: 'replied'; readonly reply: ModelReply }
  | { readonly kind: 'failed'; readonly error: ModelError }
  | { readonly kind: 'cancelled' }
) & { readonly usage: ModelUsage }

/** One try. It ends with its signal or its time, whether or not the model listens to them. */
export async function tryModel(
  clock: Clock,
  model: LanguageModel,
  request: ModelRequest,
  { signal, onText }: ModelCallOptions,
): Promise<Tried> {
  const stop = new AbortController()
  // Not with the ModelError itself: an adapter that passes it on would pass over what the call had cost.
  const forget = clock.after(LIMITS.modelTryMs, () => stop.abort())
  const either = AbortSignal.any([signal, stop.signal])
  // Once it was stopped, a deaf model may go on talking; nobody hears it.
  const say = onText && ((delta: string) => void (either.aborted || onText(delta)))
  const options = { signal: either, ...(say === undefined ? {} : { onText: say }) }
  try {
    const reply = await orLeftBehind(clock, model.generate(request, options), either)
    return signal.aborted ? { kind: 'cancelled', usage: reply.usage } : { kind: 'replied', reply, usage: reply.usage }
  } catch (cause) {
    const error = stop.signal.aborted ? tooSlow() : asModelError(cause)
    const usage = cause instanceof ModelError ? (cause.usage ?? NO_USAGE) : NO_USAGE
    return signal.aborted ? { kind: 'cancelled', usage } : { kind: 'failed', error, usage }
  } finally {
    forget()
  }
}

const tooSlow = () =>
  new ModelError('model/connection', `no complete answer within ${LIMITS.modelTryMs / 60_000} minutes`)

/** Adapters reject with a ModelError. What else comes out of one is most likely its connection. */
function asModelError(cause: unknown): ModelError {
  if (cause instanceof ModelError) return cause
  return new ModelError('model/connection', `the call broke off: ${describeError(cause)}`, { cause })
}

function orLeftBehind<T>(clock: Clock, work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => clock.after(LIMITS.modelLastWordsMs, () => reject(signal.reason as Error), { ref: true })
    let forget = signal.aborted ? leave() : () => {}
    const onAbort = () => (forget = leave())
    signal.addEventListener('abort', onAbort, { once: true })
    void work.then(resolve, reject).finally(() => {
      forget()
      signal.removeEventListener('abort', onAbort)
    })
  })
}
