import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { listOccurrences } from '../../src/schedule/occurrence.ts'
import type { Occurrence } from '../../src/schedule/occurrence.ts'
import { schedulesByName } from '../../src/schedule/schedule.ts'
import { AgentInstallation } from '../support/agents.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'

/** Where distributions put it; where it is not installed, the same is shown with a fake clock in clock.test.ts. */
const LIBRARY = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64', '/usr/lib', '/usr/local/lib']
  .flatMap((folder) => [join(folder, 'faketime/libfaketimeMT.so.1'), join(folder, 'libfaketimeMT.so.1')])
  .find((path) => existsSync(path))

/** A daemon whose wall clock a test sets while it runs; its timers and leases do not notice. */
function clockOf(place: AgentInstallation) {
  const file = join(place.folder, 'clock')
  // Whole or not at all: it is read at every look at the clock.
  const set = (offset: string) => {
    writeFileSync(`${file}.new`, offset)
    renameSync(`${file}.new`, file)
  }
  set('+0')
  const env = {
    LD_PRELOAD: LIBRARY ?? '',
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    DONT_FAKE_MONOTONIC: '1',
  }
  return { set, env }
}

async function ledger(place: AgentInstallation, name: string): Promise<Occurrence[]> {
  const store = await place.store()
  const [schedule] = await store.read(schedulesByName, name)
  const lines = await store.read(listOccurrences, { scheduleId: schedule!.id, limit: 1_000 })
  return lines.toReversed()
}

const HOUR = 3_600_000

test.skipIf(LIBRARY === undefined)(
  'the clock of a real daemon is set forward and back: one late firing for an hour of instants, none early, none twice',
  async () => {
    const place = new AgentInstallation({ agents: {} })
    const { set, env } = clockOf(place)
    await place.json<unknown>(['schedule', 'add', 'tick', '--every', '1m', '--overlap', 'queue', '--', 'true'])
    const daemon = place.start(['up'], env)
    await daemon.said('holdfast: up:')
    set('+1h')
    // A daemon that sleeps notices within its longest sleep, and at the next change.
    await place.json<unknown>(['schedule', 'add', 'other', '--in', '24h', '--', 'true'])
    const forward = await until('it has noticed', async () => {
      const lines = await ledger(place, 'tick')
      return lines.length >= 2 ? lines : undefined
    })
    expect(forward).toHaveLength(2)
    const [passed, fired] = forward
    expect(passed).toMatchObject({ state: 'skipped', attempts: 0 })
    expect(passed!.instants + fired!.instants).toBeGreaterThanOrEqual(59)
    expect(fired!.dueAt - passed!.dueAt).toBe(passed!.instants * 60_000)
    set('+0')
    // Here the clock is an hour behind; whatever fires now would be early, or a second time.
    await place.json<unknown>(['schedule', 'run-now', 'tick'])
    const back = await until('the one by hand has come to its end', async () => {
      const lines = await ledger(place, 'tick')
      return lines.length >= 3 && lines.every(({ settledAt }) => settledAt !== null) ? lines : undefined
    })
    expect(back.filter(({ origin }) => origin !== 'run_now')).toHaveLength(2)
    const [schedule] = await (await place.store()).read(schedulesByName, 'tick')
    expect(schedule!.nextAt).toBe(fired!.dueAt + 60_000)
    expect(schedule!.nextAt! - Date.now()).toBeGreaterThan(HOUR - 120_000)
    await assertInvariants(await place.store())
  },
)
