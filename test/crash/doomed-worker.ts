/**
 * A daemon that kills itself with SIGKILL at the nth point of its store (before or after a begin, a statement, a
 * commit). Prints `survived` when everything it found was carried out first.
 *
 *   node doomed-worker.ts STORE_URL HOME NTH
 */
import { systemClock as clock } from '../../src/base/clock.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import { registerThisProcess } from '../../src/workers/register.ts'
import { countRuns } from '../../src/runs/run.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'

const [, , url = '', home = '', nth = '0'] = process.argv
let points = 0
const probe = () => {
  points += 1
  if (points === Number(nth)) process.kill(process.pid, 'SIGKILL')
}

const store = url.startsWith('sqlite:')
  ? await openSqliteStore({ path: url.slice('sqlite:'.length), clock, random, probe })
  : await openPostgresStore({ url, clock, random, probe })
const worker = await registerThisProcess({
  store,
  clock,
  random,
  home,
  kind: 'daemon',
  leaseMs: 15_000,
  limits: { total: 2 },
  concurrency: 2,
  graceMs: 1_000,
  warn: (message) => void process.stderr.write(`${message}\n`),
})
await worker.start()
for (;;) {
  const unfinished = (await store.read(countRuns)).filter(({ state }) => ['queued', 'running'].includes(state))
  if (unfinished.length === 0) break
  await new Promise((resolve) => setTimeout(resolve, 10))
}
await worker.drain(0)
await store.close()
process.stdout.write(`survived ${points} points\n`)
