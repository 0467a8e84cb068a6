import { describe, expect, test } from 'vitest'

import type { RunId, ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { noteForgotten } from '../../src/events/retention.ts'
import { eventsAfter } from '../../src/events/event.ts'
import type { Store } from '../../src/store/store.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { engines } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { printedChance } from '../support/seed.ts'
import { get, happen, numbers, openStream, serve } from './support.ts'

const sqlite = engines[0]!
const store = async () => (await sqlite.database()).open()
const soon = (what: string, look: () => boolean) => until(what, () => Promise.resolve(look() ? true : undefined))

describe.each(engines)('the event stream on $name', (engine) => {
  test('goes on from any number, and a reader that is cut off again and again misses nothing and gets nothing twice', async () => {
    const total = 400
    const database = await engine.database()
    // Two processes write, while the window of one of them is read.
    const [mine, other] = [await database.open(), await database.open()]
    const { url } = await serve(mine)
    const writing = Promise.all(
      numbers(1, total / 4).map((number) => (number % 2 === 0 ? mine : other).apply(happen, 4, { number })),
    )
    const chance = printedChance(`cuts on ${engine.name}`)
    const restless = async () => {
      const read: number[] = []
      while (read.length < total) {
        const reader = await openStream(url, 'header', undefined, read.at(-1) ?? 0)
        const patience = 1 + chance.below(60)
        await soon('it has had enough', () => reader.ids.length >= Math.min(patience, total - read.length))
        reader.cut()
        read.push(...reader.ids)
      }
      return read
    }
    const patient = async (after: number) => {
      const reader = await openStream(url, after)
      await reader.has(total - after)
      return reader
    }
    const [first, second, whole] = await Promise.all([restless(), restless(), patient(0), writing])
    expect(first).toEqual(numbers(1, total))
    expect(second).toEqual(numbers(1, total))
    expect(whole.ids).toEqual(numbers(1, total))
    expect(whole.events.map(({ seq }) => seq)).toEqual(whole.ids)
    for (const after of [1, 57, LIMITS.eventsTogether, total - 1]) {
      expect((await patient(after)).ids).toEqual(numbers(after + 1, total))
    }
  })
})

test('what is written while a reader waits reaches it at once, by two readers alike', async () => {
  const served = await serve(await store())
  const readers = await Promise.all([openStream(served.url, 0), openStream(served.url, 0)])
  for (const count of [1, 2, 3]) {
    await served.store.apply(happen, 1, { count })
    for (const reader of readers) await reader.has(count)
  }
  for (const reader of readers)
    expect(reader.events.map(({ data }) => data)).toEqual([1, 2, 3].map((count) => ({ count })))
})

test('what is committed reaches many readers by few looks at the store', async () => {
  const inner = await store()
  const seen = { looks: 0 }
  const { url } = await serve(looking(inner, seen))
  const readers = await Promise.all(numbers(1, 50).map(() => openStream(url, 0)))
  await inner.apply(happen, 1)
  for (const reader of readers) await reader.has(1)
  seen.looks = 0
  for (const count of numbers(2, 11)) {
    await inner.apply(happen, 1)
    for (const reader of readers) await reader.has(count)
  }
  for (const reader of readers) expect(reader.ids).toEqual(numbers(1, 11))
  // One look for what is there, and one that finds nothing more; 50 readers by themselves would make 1,000 in all.
  expect(seen.looks).toBeLessThan(200)
})

test('whoever comes after everybody had left sees what was committed in between', async () => {
  const inner = await store()
  const seen = { looks: 0 }
  const { url, streams } = await serve(looking(inner, seen))
  await inner.apply(happen, 1)
  const first = await openStream(url, 0)
  await soon('it has found the first, and then nothing more', () => seen.looks >= 2)
  first.response.destroy()
  await soon('it has left', () => streams.count === 0)
  await inner.apply(happen, 1)
  const second = await openStream(url, 1)
  await second.has(1)
  expect(second.ids).toEqual([2])
})

/** Counts how often it is asked for events. */
const looking = (inner: Store, seen: { looks: number }): Store => ({
  ...bound(inner),
  read(look, ...args) {
    if ((look as unknown) === eventsAfter) seen.looks += 1
    return inner.read(look, ...args)
  },
})

test('a number that is not there yet belongs to another database, and is refused instead of waited for', async () => {
  const { url } = await serve(await store())
  const { status, body } = await get(`${url}/api/v1/events?after=1`)
  expect([status, (body as { error: { code: string } }).error.code]).toEqual([409, 'events/ahead'])
})

test('a number that is older than what was forgotten is refused, and the log says how far that goes', async () => {
  const { url, store: own } = await serve(await store())
  await own.apply(happen, 3, {})
  await own.apply(noteForgotten, 2, { events: 2 })
  const stream = await get(`${url}/api/v1/events?after=1`)
  expect([stream.status, (stream.body as { error: { code: string } }).error.code]).toEqual([409, 'events/compacted'])
  const reader = await openStream(url, 2)
  await reader.has(2)
  expect((await get(`${url}/api/v1/events/log?after=1`)).body).toMatchObject({ forgottenThrough: 2, seq: 4 })
  expect((await get(`${url}/api/v1/events/log?after=2`)).body).not.toHaveProperty('forgottenThrough')
})

test('a reader that takes nothing makes us hold one page, and gets everything when it goes on', async () => {
  const [total, kilobytes] = [4_000, 10]
  let handed = 0
  const inner = await store()
  const counting: Store = {
    ...bound(inner),
    async read(look, ...args) {
      const answer = await inner.read(look, ...args)
      if ((look as unknown) === eventsAfter) handed += (answer as unknown[]).length
      return answer
    },
  }
  const { url, streams } = await serve(counting)
  const reader = await openStream(url, 0)
  reader.response.pause()
  const filler = 'x'.repeat(kilobytes * 1024)
  for (let written = 0; written < total; written += 100) await inner.apply(happen, 100, { filler })
  // What the kernel's buffers take, and one page: far from the 40 MB that are there.
  expect(handed).toBeLessThan(total / 2)
  const before = handed
  await inner.apply(happen, 1, {})
  expect(handed).toBe(before)
  expect(streams.count).toBe(1)
  reader.response.resume()
  await reader.has(total + 1)
  expect(reader.ids).toEqual(numbers(1, total + 1))
})

const bound = (inner: Store): Store => ({
  engine: inner.engine,
  apply: (change, ...args) => inner.apply(change, ...args),
  read: (look, ...args) => inner.read(look, ...args),
  onChange: (listener) => inner.onChange(listener),
  check: () => inner.check(),
  warmUp: () => inner.warmUp(),
  copyTo: (path) => inner.copyTo(path),
  close: () => inner.close(),
})

test('a reader that has taken nothing for a minute is cut off; one that only waits is told that we are there', async () => {
  const clock = new FakeClock()
  const { url, store: inner, streams } = await serve(await store(), { clock })
  const idle = await openStream(url, 0)
  const asleep = await openStream(url, 0)
  await soon('both are served', () => streams.count === 2)
  asleep.response.pause()
  const filler = 'x'.repeat(100_000)
  for (let index = 0; index < 5; index++) await inner.apply(happen, 100, { filler })
  await idle.has(500)
  const passes = (ms: number) => {
    for (let passed = 0; passed < ms; passed += 1_000) clock.advance(1_000)
  }
  passes(LIMITS.heartbeatMs + 1_000)
  await soon('the idle one is told', () => idle.comments > 0)
  passes(LIMITS.readerStallMs)
  await soon('the sleeping one is cut off', () => streams.count === 1)
  expect(idle.ended).toBeUndefined()
})

test('there is a bound on the number of streams, and a closed one makes room', async () => {
  const { url, streams } = await serve(await store())
  const open = await Promise.all(numbers(1, LIMITS.eventStreams).map(() => openStream(url, 0)))
  const refused = await get(`${url}/api/v1/events`)
  expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5'])
  expect(refused.body).toMatchObject({ error: { code: 'capacity/streams', retry: { afterMs: 5_000 } } })
  open[0]!.cut()
  await soon('there is room', () => streams.count < LIMITS.eventStreams)
  await openStream(url, 0)
})

test('closing ends every stream cleanly after what it was writing, and does not wait for who does not read', async () => {
  const served = await serve(await store())
  const readers = await Promise.all([openStream(served.url, 0), openStream(served.url, 0)])
  const asleep = await openStream(served.url, 0)
  asleep.response.pause()
  await served.store.apply(happen, 3, { filler: 'x'.repeat(1_000_000) })
  for (const reader of readers) await reader.has(3)
  await served.close()
  await soon('all have ended', () => readers.every(({ ended }) => ended !== undefined))
  expect(readers.map(({ ended }) => ended)).toEqual(['clean', 'clean'])
  expect(served.streams.count).toBe(0)
  expect(served.warnings).toEqual([])
})

describe('what is being said', () => {
  const about = { runId: 'run_1' as RunId, threadId: 'thr_1' as ThreadId, agent: 'clerk' }

  test('comes without a number, from its beginning also for whoever joins late, and ends with its step', async () => {
    const { url, live, store: inner } = await serve(await store())
    const early = await openStream(url, 0)
    live({ ...about, kind: 'text', delta: 'Hel' })
    await soon('it is heard', () => early.texts.length === 1)
    live({ ...about, kind: 'text', delta: 'lo' })
    const late = await openStream(url, 0)
    for (const reader of [early, late]) {
      await soon('it is heard', () => reader.texts.map(({ delta }) => delta).join('') === 'Hello')
    }
    await inner.apply(happen, 1, {})
    live({ ...about, kind: 'step', text: 'Hello', toolCalls: [] })
    for (const reader of [early, late]) await soon('it is over', () => reader.texts.at(-1)?.ended === true)
    await early.has(1)
    expect([early.ids, late.texts[0]?.at]).toEqual([[1], 0])
    live({ ...about, kind: 'text', delta: 'Again' })
    await soon('the next one begins', () => early.texts.at(-1)?.delta === 'Again')
    expect(early.texts.at(-1)?.at).toBe(0)
  })

  test('is kept up to a bound', async () => {
    const { url, live } = await serve(await store())
    for (let index = 0; index < 100; index++) live({ ...about, kind: 'text', delta: 'x'.repeat(10_000) })
    const reader = await openStream(url, 0)
    await soon('something is heard', () => reader.texts.length === 1)
    expect(reader.texts[0]?.delta.length).toBeLessThan(LIMITS.liveCharacters + 10_001)
  })
})
