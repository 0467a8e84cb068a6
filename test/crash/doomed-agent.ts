/**
 * A daemon with an agent that kills itself with SIGKILL at the nth point of its store; or, given a number of
 * milliseconds, so long after the supervisor of its nth action is there, together with the supervisors of the actions that
 * are under way then. Prints `survived` when all was done.
 *
 *   node doomed-agent.ts STORE_PATH HOME CONFIG NTH [AFTER_MS]
 */
import { loadConfig } from '../../src/config/load.ts'
import { systemClock as clock } from '../../src/base/clock.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import { countRuns } from '../../src/runs/run.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { McpServers } from '../../src/tools/mcp/servers.ts'
import type { LiveEvent } from '../../src/workers/agents/execute-agent.ts'
import { openAgents } from '../../src/workers/agents/open-agents.ts'
import { registerThisProcess } from '../../src/workers/register.ts'
import { supervisorsOf } from '../support/processes.ts'

const [, , path = '', home = '', configPath = '', nth = '0', afterMs] = process.argv
let points = 0
const probe = () => {
  points += 1
  if (afterMs === undefined && points === Number(nth)) process.kill(process.pid, 'SIGKILL')
}

let begun = 0
const live = (event: LiveEvent) => {
  if (afterMs === undefined || event.kind !== 'action' || event.action.state !== 'started') return
  begun += 1
  if (begun === Number(nth)) killWithSupervisor()
}

/** How long a process takes to be there depends on how busy the machine is. */
function killWithSupervisor(): void {
  if (supervisorsOf(home).length === 0) return void setTimeout(killWithSupervisor, 1)
  setTimeout(() => {
    for (const { pid } of supervisorsOf(home)) process.kill(pid, 'SIGKILL')
    process.kill(process.pid, 'SIGKILL')
  }, Number(afterMs))
}

const warn = (message: string) => void process.stderr.write(`${message}\n`)
const config = await loadConfig(configPath)
const store = await openSqliteStore({ path, clock, random, probe })
const place = { cwd: config.folder, env: process.env, codeCache: `${home}/cache` }
const folder = `${home}/mcp`
const servers = new McpServers({ definitions: config.mcpServers, clock, random, warn, place, folder })
const agents = openAgents(config, { store, clock, random, warn, place, servers })
const options = {
  store,
  clock,
  random,
  home,
  warn,
  agents,
  live,
  leaseMs: 15_000,
  limits: {},
  concurrency: 2,
  graceMs: 1_000,
}
const worker = await registerThisProcess({ ...options, kind: 'daemon' })
await worker.start()
for (;;) {
  const open = (await store.read(countRuns)).filter(({ state }) => ['queued', 'running', 'parked'].includes(state))
  if (open.length === 0) break
  await new Promise((resolve) => setTimeout(resolve, 10))
}
await worker.drain(0)
await store.close()
process.stdout.write(`survived ${points} points\n`)
