/**
 * A daemon that kills itself with SIGKILL when it comes to a named point of a workspace's life the nth time; `-` is none. With
 * `stop` it stops itself there instead (SIGSTOP), as a machine does that sleeps. Prints `survived` when all was done.
 *
 *   node doomed-workspace.ts STORE_URL HOME POINT [NTH] [kill|stop] [LEASE_MS]
 */
import { systemClock as clock } from '../../src/base/clock.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import { thisPlace } from '../../src/processes/identity.ts'
import { countRuns } from '../../src/runs/run.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { sweepableOn } from '../../src/workspace/settle.ts'
import { countWorkspaces } from '../../src/workspace/workspace.ts'
import { tendRegularly } from '../../src/workers/tend.ts'
import { registerThisProcess } from '../../src/workers/register.ts'

const [, , url = '', home = '', at = '-', nth = '1', how = 'kill', leaseMs = '15000'] = process.argv
let met = 0
const point = (name: string) => {
  if (name !== at) return
  met += 1
  if (met === Number(nth)) process.kill(process.pid, how === 'stop' ? 'SIGSTOP' : 'SIGKILL')
}

const store = url.startsWith('sqlite:')
  ? await openSqliteStore({ path: url.slice('sqlite:'.length), clock, random })
  : await openPostgresStore({ url, clock, random })
const worker = await registerThisProcess({
  store,
  clock,
  random,
  home,
  kind: 'daemon',
  leaseMs: Number(leaseMs),
  limits: {},
  concurrency: 8,
  graceMs: 1_000,
  warn: (message) => void process.stderr.write(`${message}\n`),
  workspaces: { env: process.env, point },
})
await worker.start()
const stopTending = tendRegularly({ clock, leaseMs: Number(leaseMs) }, worker)

const UNSETTLED = ['opened', 'active', 'prepared', 'checked', 'decided', 'discarding', 'observing']
for (;;) {
  const runs = (await store.read(countRuns)).filter(({ state }) => ['queued', 'running', 'parked'].includes(state))
  const open = (await store.read(countWorkspaces)).filter(({ state }) => UNSETTLED.includes(state))
  const remains = await store.read(sweepableOn, thisPlace().host, 1)
  if (runs.length + open.length + remains.length === 0) break
  await new Promise((resolve) => setTimeout(resolve, 10))
}
stopTending()
await worker.drain(60_000)
await store.close()
process.stdout.write(`survived, met ${met} times\n`)
