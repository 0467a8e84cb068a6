import type { Store } from '../../src/store/store.ts'
import type { Change, Query, Transition } from '../../src/store/transition.ts'

/** A store whose every query passes through `seen` on its way. */
export function seenStore(store: Store, seen: <T>(query: Query<T>) => Query<T>): Store {
  function* watched<T>(transition: Transition<T>): Transition<T> {
    let step = transition.next()
    while (step.done !== true) step = transition.next(yield* seen(step.value))
    return step.value
  }
  const through = <Args extends readonly unknown[], T>(change: Change<Args, T>): Change<Args, T> =>
    typeof change === 'function'
      ? (...args: Args) => watched(change(...args))
      : { single: (...args: Args) => seen(change.single(...args)) }
  return {
    engine: store.engine,
    apply: (change, ...args) => store.apply(through(change), ...args),
    read: (look, ...args) => store.read(through(look), ...args),
    onChange: (listener) => store.onChange(listener),
    check: () => store.check(),
    warmUp: () => store.warmUp(),
    copyTo: (path) => store.copyTo(path),
    close: () => store.close(),
  }
}
