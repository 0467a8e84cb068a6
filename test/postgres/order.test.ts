import { expect, test } from 'vitest'

import { eventsAfter } from '../../src/events/event.ts'
import type { Event } from '../../src/events/event.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { finishRun } from '../../src/runs/finish.ts'
import type { HoldingProbe, Store } from '../../src/store/store.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { tellThread } from '../../src/threads/notice.ts'
import { removeThread } from '../../src/threads/remove.ts'
import { openThread } from '../../src/threads/thread.ts'
import { query } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { running, submission, submit, submitted } from '../support/world.ts'
import { deep, freshSchema, openedStore, proxyBefore } from './support.ts'

const PAGE = 7
const MOST_PAGES = 10_000

/** Reads on from where it was, page by page, as `holdfast events --follow` does. */
class Reader {
  readonly store: Store
  readonly seen: Event[] = []

  constructor(store: Store) {
    this.store = store
  }

  async catchUp(): Promise<void> {
    for (let page = 0; page < MOST_PAGES; page++) {
      const events = await this.store.read(eventsAfter, this.seen.at(-1)?.seq ?? 0, PAGE)
      this.seen.push(...events)
      if (events.length < PAGE) return
    }
  }
}

async function expectEverything(reader: Reader): Promise<void> {
  await reader.catchUp()
  expect(reader.seen).toEqual(await reader.store.read(eventsAfter, 0, 1_000_000))
}

/** Stops a store at one of its points until `go`. */
function holding(matches: Parameters<HoldingProbe>[0]) {
  const reached = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  let armed = true
  const probe: HoldingProbe = ({ at, when }) => {
    if (!armed || at !== matches.at || when !== matches.when) return
    armed = false
    reached.resolve()
    return released.promise
  }
  return { probe, reached: reached.promise, go: () => released.resolve() }
}

test('what is told to a thread that is just being removed is not put into its inbox', async () => {
  const url = await freshSchema()
  const held = holding({ at: 'commit', when: 'before' })
  const [slow, quick] = [await openedStore(url, { probe: held.probe }), await openedStore(url)]
  const threadId = 'leaving' as ThreadId
  await quick.apply(openThread, threadId, 'command', null)
  const removed = slow.apply(removeThread, threadId)
  await held.reached
  const told = quick.apply(tellThread, threadId, 'a:key', 'news')
  // Seen too early, because of somebody else's, it would be told when the other is through: that is as right.
  const waiting = () => query(url, 'select 1 from pg_locks where not granted limit 1')
  await until('one waits for the other', async () => (await waiting()).length > 0 || undefined)
  held.go()
  await removed
  expect(await told).toBe(false)
  expect(await quick.read(messagesOf, threadId)).toEqual([])
})

test('a transition that is held just before its commit is not passed by a reader that goes on', async () => {
  const url = await freshSchema()
  const held = holding({ at: 'commit', when: 'before' })
  const [slow, quick] = [await openedStore(url, { probe: held.probe }), await openedStore(url)]
  const reader = new Reader(quick)
  const late = submitted(slow)
  await held.reached
  for (let i = 0; i < 20; i++) {
    await submitted(quick)
    await reader.catchUp()
  }
  held.go()
  const { id } = await late
  await expectEverything(reader)
  expect(reader.seen.at(-1)).toMatchObject({ type: 'run.queued', runId: id })
})

test('one whose events are written and whose commit is on its way lets nobody pass', async () => {
  const url = await freshSchema()
  const proxy = await proxyBefore(url)
  const [slow, quick] = [await openedStore(proxy.through(url)), await openedStore(url)]
  const reader = new Reader(quick)
  proxy.atCommit = () => 'hold'
  const late = submitted(slow)
  const link = await until('the commit is held', () => Promise.resolve(proxy.links().find(({ holds }) => holds)))
  let passed = 0
  const others = Promise.all(Array.from({ length: 5 }, () => submitted(quick).then(() => (passed += 1))))
  const waiting = `select 1 from pg_locks where locktype = 'advisory' and not granted`
  await until('they wait', async () => (passed > 0 || (await query(url, waiting)).length > 0 ? true : undefined))
  await reader.catchUp()
  proxy.atCommit = () => 'pass'
  link.deliver()
  await Promise.all([late, others])
  await expectEverything(reader)
  expect(passed).toBe(5)
})

async function bringToItsEnd(store: Store, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const { ref } = await running(store)
    await Promise.all([store.apply(finishRun, ref, { state: 'succeeded' }), submit(store, submission())])
  }
}

test('a reader beside eight writers sees every event once, in order, and a run in the order of its life', async () => {
  const url = await freshSchema()
  const writers = await Promise.all(Array.from({ length: 8 }, () => openedStore(url)))
  const reader = new Reader(await openedStore(url))
  let writing = writers.length
  const work = Promise.all(writers.map((store) => bringToItsEnd(store, deep(200)).finally(() => (writing -= 1))))
  const isWriting = () => writing > 0
  for (let turn = 0; isWriting() && turn < MOST_PAGES; turn++) await reader.catchUp()
  await work
  await expectEverything(reader)
  const seqs = reader.seen.map(({ seq }) => seq)
  expect(seqs).toEqual([...new Set(seqs)].toSorted((a, b) => a - b))
  const lives = Map.groupBy(
    reader.seen.filter(({ runId }) => runId !== null),
    ({ runId }) => runId,
  )
  const whole = ['run.queued', 'run.started', 'run.finished']
  for (const events of lives.values()) {
    expect(whole.slice(0, events.length)).toEqual(events.map(({ type }) => type))
  }
  expect(lives.size).toBe(2 * 8 * deep(200))
  console.log(`${reader.seen.length} events of ${lives.size} runs by eight writers`)
})
