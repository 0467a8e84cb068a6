import { mkdtempSync, rmSync } from 'node:fs'
import { DatabaseSync, StatementSync, constants } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test, vi } from 'vitest'

import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { hurriedClock } from '../support/clocks.ts'
import { aDayOfWork } from '../support/day-of-work.ts'

/** SQLite asks an authorizer about all that a statement names, whenever it plans it. */
let asked = 0
const allow = () => {
  asked += 1
  return constants.SQLITE_OK
}

/** Which statements were planned while they ran, though they had run before. */
function watchPlans(): { readonly uses: () => number; readonly again: ReadonlySet<string> } {
  const prepare = Reflect.get(DatabaseSync.prototype, 'prepare')
  const watched = new WeakSet<DatabaseSync>()
  vi.spyOn(DatabaseSync.prototype, 'prepare').mockImplementation(function (this: DatabaseSync, text: string) {
    // Once: who sets one has all plans thrown away.
    if (!watched.has(this)) this.setAuthorizer(allow)
    watched.add(this)
    return prepare.call(this, text)
  })
  const known = new WeakSet<StatementSync>()
  const again = new Set<string>()
  let uses = 0
  for (const how of ['run', 'all'] as const) {
    const work = StatementSync.prototype[how] as (...values: unknown[]) => never
    vi.spyOn(StatementSync.prototype, how).mockImplementation(function (this: StatementSync, ...values: unknown[]) {
      const before = asked
      const answer = work.apply(this, values)
      // What begins and ends a transaction, or changes the tables, is asked about when it runs.
      if (
        asked > before &&
        known.has(this) &&
        /^\s*(select|insert into (?!schema_)|update|delete|with)/.test(this.sourceSQL)
      )
        again.add(this.sourceSQL)
      known.add(this)
      uses += 1
      return answer
    })
  }
  return { uses: () => uses, again }
}

test('a statement is planned once for a connection on SQLite, whatever it is given', async () => {
  const home = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  onTestFinished(() => {
    vi.restoreAllMocks()
    rmSync(home, { recursive: true, force: true })
  })
  const plans = watchPlans()
  const clock = hurriedClock()
  const store = await openSqliteStore({ path: ':memory:', clock })
  await aDayOfWork({ store, clock, home })
  await store.close()
  expect(plans.uses()).toBeGreaterThan(1_000)
  expect([...plans.again]).toEqual([])
}, 120_000)
