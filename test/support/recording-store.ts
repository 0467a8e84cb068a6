import type { Store } from '../../src/store/store.ts'
import type { Sql } from '../../src/store/sql.ts'
import type { Change, Query, Transition } from '../../src/store/transition.ts'

/** Every statement that went through a store, by its text. */
export interface Recording {
  readonly store: Store
  readonly statements: ReadonlyMap<string, Sql>
}

export function recordingStore(store: Store): Recording {
  const statements = new Map<string, Sql>()
  const note = (query: Query<unknown>): void => {
    for (const part of query.parts ?? [query]) statements.set(part.sql.strings.join('?'), part.sql)
  }
  function* watched<T>(transition: Transition<T>): Transition<T> {
    let step = transition.next()
    while (step.done !== true) {
      note(step.value)
      step = transition.next(yield step.value)
    }
    return step.value
  }
  const through = <Args extends readonly unknown[], T>(change: Change<Args, T>): Change<Args, T> =>
    typeof change === 'function'
      ? (...args: Args) => watched(change(...args))
      : {
          single: (...args: Args) => {
            const query = change.single(...args)
            note(query)
            return query
          },
        }
  const recording: Store = {
    engine: store.engine,
    apply: (change, ...args) => store.apply(through(change), ...args),
    read: (look, ...args) => store.read(through(look), ...args),
    onChange: (listener) => store.onChange(listener),
    check: () => store.check(),
    copyTo: (path) => store.copyTo(path),
    close: () => store.close(),
  }
  return { store: recording, statements }
}

/** The texts that a driver is given while `work` goes on, whoever gives them. */
export async function overheard(
  // oxlint-disable-next-line typescript/no-explicit-any
  driver: Record<string, any>,
  method: string,
  textOf: (given: unknown) => string | undefined,
  work: () => Promise<void>,
): Promise<ReadonlySet<string>> {
  const texts = new Set<string>()
  const own = driver[method] as (...given: unknown[]) => unknown
  driver[method] = function (this: unknown, ...given: unknown[]) {
    const text = textOf(given[0])
    if (text !== undefined) texts.add(text)
    return own.apply(this, given)
  }
  try {
    await work()
    return texts
  } finally {
    driver[method] = own
  }
}
