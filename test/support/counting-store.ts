import type { Store } from '../../src/store/store.ts'
import { Query } from '../../src/store/transition.ts'
import type { Answer } from '../../src/store/transition.ts'
import { seenStore } from './seen-store.ts'

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
  return {
    store: seenStore(store, seen),
    now: (): Counted => ({ ...counted }),
    texts: (): readonly string[] => [...texts],
  }
}
