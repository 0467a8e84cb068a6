import type { Store } from '../../src/store/store.ts'
import type { Sql } from '../../src/store/sql.ts'
import type { Query } from '../../src/store/transition.ts'
import { seenStore } from './seen-store.ts'

/** Every statement that went through a store, by its text. */
export interface Recording {
  readonly store: Store
  readonly statements: ReadonlyMap<string, Sql>
}

export function recordingStore(store: Store): Recording {
  const statements = new Map<string, Sql>()
  const noted = <T>(query: Query<T>): Query<T> => {
    for (const part of query.parts ?? [query]) statements.set(part.sql.strings.join('?'), part.sql)
    return query
  }
  return { store: seenStore(store, noted), statements }
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
