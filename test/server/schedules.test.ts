import { describe, expect, test } from 'vitest'

import { createClient } from '../../src/api/client.ts'
import type { Api } from '../../src/api/client.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { listActs } from '../../src/tokens/act.ts'
import { openThread } from '../../src/threads/thread.ts'
import { engines } from '../support/engines.ts'
import { TOKEN, serve } from './support.ts'

/** All of a list, two at a time. */
async function paged(page: (after: string | undefined) => ReturnType<Api['call']>): Promise<string[]> {
  const found: string[] = []
  for (let after: string | undefined; ;) {
    const { items, next } = (await page(after)) as { items: { id: string }[]; next?: string }
    found.push(...items.map(({ id }) => id))
    if (next === undefined) return found
    after = next
  }
}

const from = (after: string | undefined) => ({ limit: 2, ...(after === undefined ? {} : { after }) })

describe.each(engines)('schedules over HTTP on $name', (engine) => {
  async function house() {
    const store = await (await engine.database()).open()
    await store.apply(openThread, 'inbox' as ThreadId, 'command', null)
    const { url } = await serve(store)
    return { store, api: createClient({ url, token: TOKEN }) }
  }
  const job = (name: string, every: string) => ({ name, every, threadId: 'inbox', text: name })

  test('one is added, looked at, changed, paused, resumed, fired and removed, and the record says by whom', async () => {
    const { store, api } = await house()
    const added = await api.call('schedules.add', { ...job('hourly', '1h'), why: 'to see' })
    expect(added).toMatchObject({ name: 'hourly', kind: 'job', state: 'active', madeBy: 'the owner', version: 1 })
    await expect(api.call('schedules.add', job('hourly', '2h'))).rejects.toMatchObject({ code: 'schedules/name-taken' })
    await expect(api.call('schedules.add', job('sch_x', '2h'))).rejects.toMatchObject({ code: 'usage/schedule' })
    const schedule = added.id
    const changed = await api.call('schedules.edit', { schedule, every: '2h', maxFirings: 9 })
    expect(changed).toMatchObject({
      rule: { everyMs: 7_200_000 },
      options: { maxFirings: 9, why: 'to see' },
      version: 2,
    })
    expect(await api.call('schedules.pause', { schedule: 'hourly', reason: 'holidays' })).toMatchObject({
      state: 'paused',
    })
    expect(await api.call('schedules.pause', { schedule })).toMatchObject({ already: true })
    expect(await api.call('schedules.resume', { schedule })).toMatchObject({ state: 'active' })
    const fired = await api.call('schedules.run-now', { schedule, key: 'a / b' })
    expect(fired).toMatchObject({ origin: 'run_now', by: 'the owner' })
    expect(await api.call('schedules.run-now', { schedule, key: 'a / b' })).toMatchObject({ id: fired.id })
    expect(await api.call('occurrences.show', { occurrence: fired.id })).toMatchObject({ scheduleId: schedule })
    const { last, next } = await api.call('schedules.show', { schedule })
    expect([last.map(({ id }) => id), next.length]).toEqual([[fired.id], 5])
    expect(await api.call('schedules.remove', { schedule, run: 'run_x' })).toMatchObject({ state: 'removed' })
    await expect(api.call('schedules.pause', { schedule })).rejects.toMatchObject({ code: 'schedules/over' })
    const acts = await store.read(listActs, 20)
    expect(new Set(acts.map(({ call, by }) => `${call} ${by}`))).toContain('schedules.remove the owner')
  })

  test('pages have each of them once, what comes next first, and those for which nothing comes last', async () => {
    const { api } = await house()
    const ids: string[] = []
    for (const hours of [5, 3, 1, 4, 2]) ids.push((await api.call('schedules.add', job(`h${hours}`, `${hours}h`))).id)
    for (const schedule of ['h2', 'h4']) await api.call('schedules.remove', { schedule })
    const [five, three, one, four, two] = ids
    const listed = await paged((after) => api.call('schedules.list', from(after)))
    expect(listed.slice(0, 3)).toEqual([one, three, five])
    expect(new Set(listed.slice(3))).toEqual(new Set([two, four]))
    const fired: string[] = []
    for (const key of ['a', 'b', 'c', 'd', 'e'])
      fired.push((await api.call('schedules.run-now', { schedule: 'h1', key })).id)
    const ledger = await paged((after) => api.call('occurrences.list', { ...from(after), schedule: 'h1' }))
    expect(ledger.toSorted()).toEqual(fired.toSorted())
  })

  test('a follow-up is stored, listed with its thread, and cancelled; what a caller says of a run is recorded as that', async () => {
    const { api } = await house()
    const { id } = await api.call('followups.add', {
      threadId: 'inbox',
      text: 'and then?',
      in: '2h',
      reason: 'to look',
    })
    expect((await api.call('followups.list', { thread: 'inbox' })).items.map((each) => each.id)).toEqual([id])
    expect((await api.call('threads.show', { thread: 'inbox' })).schedules).toMatchObject([
      { id, options: { why: 'to look' } },
    ])
    expect((await api.call('status', {})).schedules).toEqual({ active: 1 })
    expect(await api.call('followups.cancel', { followup: id })).toMatchObject({ state: 'removed' })
    await expect(api.call('followups.cancel', { followup: id })).rejects.toMatchObject({ code: 'schedules/over' })
    const { id: schedule } = await api.call('schedules.add', job('hourly', '1h'))
    const fired = await api.call('schedules.run-now', { schedule, run: 'run_x' })
    expect(fired.by).toBe('run_x, as the owner says')
  })
})
