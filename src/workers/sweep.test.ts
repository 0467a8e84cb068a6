import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { systemClock } from '../base/clock.ts'
import { LIMITS } from '../base/limits.ts'
import { openSqliteStore } from '../store/sqlite/store.ts'
import { running } from '../../test/support/world.ts'
import { commandFolder } from './home.ts'
import { sweepRemains } from './sweep.ts'

test('old remains are removed, young ones and those of an attempt under way are not', async () => {
  const home = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  onTestFinished(() => rmSync(home, { recursive: true }))
  const store = await openSqliteStore({ path: ':memory:' })
  const { attempt } = await running(store)
  const folders = {
    old: commandFolder(home, 'old'),
    young: commandFolder(home, 'young'),
    live: commandFolder(home, attempt.mark),
  }
  const longAgo = (systemClock.now() - LIMITS.remainsKeptMs - 1_000) / 1_000
  for (const folder of Object.values(folders)) mkdirSync(folder, { recursive: true })
  for (const folder of [folders.old, folders.live]) utimesSync(folder, longAgo, longAgo)
  expect(await sweepRemains(home, store, systemClock)).toBe(1)
  expect([existsSync(folders.old), existsSync(folders.young), existsSync(folders.live)]).toEqual([false, true, true])
  await store.close()
})
