import { fork } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { newMessageId, newRunId } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { sendMessage } from '../../src/runs/send.ts'
import type { Runtime } from '../../src/runtime.ts'
import { beside, defineBench, percentile } from '../bench.ts'
import type { Engine, Place, Row } from '../bench.ts'
import { ask, newHome, openProduct, pause, processorOf, startDaemon, until } from '../product.ts'
import type { Daemon } from '../product.ts'
import { openReaders } from './readers.ts'
import type { Readers } from './readers.ts'

/** Something that has readers, and makes events. */
interface Source {
  readonly pid: number
  open(readers: number): Promise<Readers>
  /** One event, as somebody's request makes it. */
  one(): Promise<unknown>
  /** Many, as quickly as they can be made. */
  many(count: number): Promise<unknown>
  close(): Promise<void>
}

/** The real daemon. Its only run waits for its model, so that each message is one event and nothing else happens. */
async function openDaemon(place: Place, engine: Engine): Promise<Source> {
  const at = await newHome(place, engine)
  writeFileSync(join(at.home, 'replies.json'), JSON.stringify({ replies: [{ text: 'done', delayMs: 600_000 }] }))
  const daemon = await startDaemon(at, { config: { agents: { clerk: { model: 'scripted:./replies.json' } } } })
  const text = 'x'.repeat(100)
  const { threadId } = await ask<{ threadId: ThreadId }>(daemon, '/messages', { agent: 'clerk', text })
  await until('its run is at work', async () => {
    const { items } = await ask<{ items: readonly { state: string }[] }>(daemon, '/runs?limit=1')
    return items[0]?.state === 'running' ? true : undefined
  })
  const writer = await openProduct(at.home, at.store)
  return {
    pid: daemon.pid,
    open: (count) => openAtTheEnd(daemon, count),
    one: () => ask(daemon, '/messages', { threadId, text }),
    many: (count) => fromAnotherProcess(writer, threadId, count),
    async close() {
      await writer.close()
      await daemon.stop()
    },
  }
}

async function openAtTheEnd(daemon: Daemon, count: number): Promise<Readers> {
  const { seq } = await ask<{ seq: number }>(daemon, '/threads?limit=1')
  return openReaders(`${daemon.url}/events?after=${seq}`, { Authorization: `Bearer ${daemon.token}` }, count)
}

/** Many transitions a commit, by a process beside the daemon: the daemon's processor is that of its readers alone. */
function fromAnotherProcess({ store, random }: Runtime, threadId: ThreadId, count: number): Promise<unknown> {
  return Promise.all(
    Array.from({ length: count }, () => {
      const ids = { messageId: newMessageId(random), runId: newRunId(random), threadId }
      return store.apply(sendMessage, {
        ...ids,
        agent: 'clerk',
        text: 'x'.repeat(100),
        key: ids.messageId,
        wakes: false,
      })
    }),
  )
}

async function openRaw(): Promise<Source> {
  const child = fork(fileURLToPath(new URL('raw-server.ts', import.meta.url)))
  process.once('exit', () => child.kill('SIGKILL'))
  const port = await new Promise<number>((resolve) => child.once('message', (message) => resolve(Number(message))))
  const url = `http://127.0.0.1:${port}/`
  const emit = async (count: number) =>
    (await fetch(url, { method: 'POST', headers: { 'x-count': String(count) } })).text()
  return {
    pid: child.pid!,
    open: (count) => openReaders(url, {}, count),
    one: () => emit(1),
    many: emit,
    async close() {
      child.kill('SIGKILL')
    },
  }
}

interface Measured {
  readonly p50: number
  readonly p99: number
  /** Events written to readers a second, in a burst. */
  readonly rate: number
  /** Processor time of the server for one event written to one reader, in µs. */
  readonly cost: number
}

async function measure(source: Source, { readers, events, burst }: Load): Promise<Measured> {
  const steady = await source.open(readers)
  for (let event = 0; event < events; event += 1) {
    await Promise.all([source.one(), pause(25)])
  }
  await until('all readers have them', () => (steady.count() >= events * readers ? true : undefined))
  steady.close()
  const crowd = await source.open(readers)
  const [cpu, from] = [processorOf(source.pid), performance.now()]
  await source.many(burst)
  await until('all readers have the burst', () => (crowd.count() >= burst * readers ? true : undefined))
  const [seconds, used] = [(performance.now() - from) / 1_000, processorOf(source.pid) - cpu]
  crowd.close()
  const written = burst * readers
  const late = steady.delays
  return {
    p50: percentile(late, 0.5),
    p99: percentile(late, 0.99),
    rate: written / seconds,
    cost: (used * 1_000) / written,
  }
}

interface Load {
  readonly readers: number
  readonly events: number
  readonly burst: number
}

function rowsOf(engine: Engine, { readers }: Load, ours: Measured, raw: Measured): Row[] {
  const title = `${engine === 'sqlite' ? 'SQLite' : 'PostgreSQL'}, ${readers} readers`
  return [
    beside(`${title}: from the event's instant to a reader, p50, 40 events/s`, 'ms', ours.p50, raw.p50),
    { ...beside(`${title}: the same, p99`, 'ms', ours.p99, raw.p99), bound: { of: 'value', most: 100 } },
    beside(`${title}: a burst, its commits included: events written to readers`, '/s', ours.rate, raw.rate),
    beside(`${title}: processor time of the daemon an event and reader`, 'µs', ours.cost, raw.cost),
  ]
}

/** Whoever watches sees what happened soon after it was committed, however many watch. */
export const bench = defineBench({
  name: 'fanout',
  what: 'events from their commit to 100 readers of the stream',
  full: { readers: 100, events: 300, burst: 3_000 },
  quick: { readers: 30, events: 60, burst: 300 },
  async run(load, place) {
    const rows: Row[] = []
    const limit = await openRaw()
    const raw = await measure(limit, load)
    await limit.close()
    for (const engine of place.engines) {
      const daemon = await openDaemon(place, engine)
      rows.push(...rowsOf(engine, load, await measure(daemon, load), raw))
      await daemon.close()
    }
    return rows
  },
})
