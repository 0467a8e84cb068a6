import type { Store } from '../../src/store/store.ts'
import { Query } from '../../src/store/transition.ts'
import type { Answer, Change, Transition } from '../../src/store/transition.ts'

export interface Counted {
  readonly statements: number
  readonly rows: number
  readonly characters: number
}

/** A store that counts what passes through it: statements, and the rows that come back. */
export function countingStore(store: Store) {
  const counted = { statements: 0, rows: 0, characters: 0 }
  const texts = new Set<string>()
  const seen = <T>(query: Query<T>): Query<T> => {
    const read = (answer: Answer) => {
      counted.statements += 1
      counted.rows += answer.rows.length
      counted.characters += JSON.stringify(answer.rows).length
      texts.add(query.sql.strings.join('?'))
      return query.read(answer)
    }
    const { sql, returnsRows, deferred, parts } = query
    // With everything else that an engine knows of it.
    return Object.assign(new Query(sql, returnsRows, read, deferred), query, {
      read,
      ...(parts === undefined ? {} : { parts: parts.map(seen) }),
    })
  }
  function* watched<T>(transition: Transition<T>): Transition<T> {
    let step = transition.next()
    while (step.done !== true) step = transition.next(yield* seen(step.value))
    return step.value
  }
  const through = <Args extends readonly unknown[], T>(change: Change<Args, T>): Change<Args, T> =>
    typeof change === 'function'
      ? (...args: Args) => watched(change(...args))
      : { single: (...args: Args) => seen(change.single(...args)) }
  const counting: Store = {
    engine: store.engine,
    apply: (change, ...args) => store.apply(through(change), ...args),
    read: (look, ...args) => store.read(through(look), ...args),
    onChange: (listener) => store.onChange(listener),
    check: () => store.check(),
    copyTo: (path) => store.copyTo(path),
    close: () => store.close(),
  }
  return { store: counting, now: (): Counted => ({ ...counted }), texts: (): readonly string[] => [...texts] }
}
