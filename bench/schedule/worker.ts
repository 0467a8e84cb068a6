/** One worker: stores its schedules, fires them as they come due, and prints how late it was. */
import { systemClock as clock } from '../../src/base/clock.ts'
import { newScheduleId, newThreadId, newWorkerId, systemRandomness as random } from '../../src/base/ids.ts'
import { registerWorker } from '../../src/runs/worker.ts'
import { addSchedule } from '../../src/schedule/edit.ts'
import { DEFAULT_OPTIONS } from '../../src/schedule/schedule.ts'
import { integer, row, text } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import { all, single } from '../../src/store/transition.ts'
import { openThread } from '../../src/threads/thread.ts'
import { Scheduler } from '../../src/workers/scheduler.ts'
import { openProduct } from '../product.ts'

const [home = '', url = '', firings = '2000', seconds = '10'] = process.argv.slice(2)
const runtime = await openProduct(home, url === '' ? undefined : url)
const { store } = runtime
const identity = { host: 'bench', boot: '', pidNamespace: '', pid: process.pid, startTime: 0 }
await store.apply(registerWorker, {
  id: newWorkerId(random),
  kind: 'daemon',
  home: `/${random.hex(8)}`,
  identity,
  agents: ['clerk'],
})
const threads = await Promise.all(
  Array.from({ length: 50 }, () => store.apply(openThread, newThreadId(random), 'clerk', null)),
)
const begin = Date.now() + 5_000
const ids = await Promise.all(
  Array.from({ length: Number(firings) }, async (_, index) => {
    const id = newScheduleId(random)
    const threadId = threads[index % threads.length]!.id
    await store.apply(addSchedule, {
      id,
      name: id,
      kind: 'job',
      rule: { kind: 'once', at: begin + Math.floor(random.fraction() * Number(seconds) * 1_000) },
      target: { kind: 'message', threadId, generation: 1, text: 'now' },
      options: DEFAULT_OPTIONS,
      madeBy: 'bench',
    })
    return id
  }),
)
const scheduler = new Scheduler({ store, clock, random, warn: (words) => console.error(words) })
await scheduler.look()
await new Promise((resolve) => setTimeout(resolve, begin - Date.now()))
const before = process.cpuUsage()
const started = performance.now()
await store.apply(openThread, threads[0]!.id, 'clerk', null)
const commitMs = performance.now() - started
await new Promise((resolve) => setTimeout(resolve, Number(seconds) * 1_000 + 1_000))
const used = process.cpuUsage(before)
await scheduler.stop()
const firedRow = row({ id: text(), late: integer })
const fired = single(() =>
  all(firedRow, sql`select schedule_id as id, fired_at - due_at as late from occurrences where fired_at is not null`),
)
const mine = new Set<string>(ids)
const late = (await store.read(fired))
  .filter(({ id }) => mine.has(id))
  .map((each) => each.late)
  .toSorted((a, b) => a - b)
await runtime.close()
const at = (share: number) => late[Math.min(Math.floor(late.length * share), late.length - 1)] ?? -1
const result = {
  fired: late.length,
  p50: at(0.5),
  p99: at(0.99),
  most: at(1),
  cpuMs: (used.user + used.system) / 1_000,
  commitMs,
}
console.log(JSON.stringify(result))
