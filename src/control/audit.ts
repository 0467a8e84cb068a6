import { record } from '../events/event.ts'
import type { Change, Transition } from '../store/transition.ts'

/** Who asked for what, and through which token. */
export interface Act {
  readonly call: string
  readonly on?: string
  readonly by: string
  readonly via: string
  readonly tokenId?: string
}

/** A change and the record of who asked for it, in one transaction: there is none without the other. */
export function* audited<Args extends readonly unknown[], T>(
  act: Act,
  change: Change<Args, T>,
  args: Args,
): Transition<T> {
  const answer = typeof change === 'function' ? yield* change(...args) : yield* change.single(...args)
  const outcome = (answer as { readonly kind?: unknown } | null | undefined)?.kind
  yield* record({
    type: 'operator.acted',
    data: { ...act, ...(typeof outcome === 'string' ? { outcome } : {}) },
  })
  return answer
}
