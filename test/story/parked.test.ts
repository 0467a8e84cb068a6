import { existsSync, mkdirSync, readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { homePaths } from '../../src/workers/home.ts'
import { AgentInstallation } from '../support/agents.ts'
import { FIRST_PARKED, putParkedRuns } from '../support/parked.ts'

const PARKED = 10_000
const canMeasure = existsSync('/proc/self/status')
if (!canMeasure) console.warn('no /proc here: the memory of a daemon with many parked runs is not measured')

/** The memory of a daemon with so many parked runs, in MiB, once its heartbeat has taken up the one that is due. */
async function daemonMemory(parked: number): Promise<number> {
  const place = new AgentInstallation({ agents: { clerk: { replies: [{ text: 'done' }] } }, lease: '1s' })
  const { database } = homePaths(place.home)
  mkdirSync(place.home, { recursive: true })
  await (await openSqliteStore({ path: database })).close()
  putParkedRuns(database, parked)
  const daemon = await place.daemon()
  await place.reaches(FIRST_PARKED, 'succeeded')
  const status = readFileSync(`/proc/${daemon.pid}/status`, 'utf8')
  daemon.kill('SIGKILL')
  await daemon.ended
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024
}

test.runIf(canMeasure)('ten thousand parked runs cost the daemon under 50 MB', async () => {
  const few = await daemonMemory(1)
  const many = await daemonMemory(PARKED)
  console.log(`a daemon with 1 parked run: ${few.toFixed(1)} MiB, with ${PARKED}: ${many.toFixed(1)} MiB`)
  expect(few).toBeGreaterThan(10)
  expect(many - few).toBeLessThan(50)
})
