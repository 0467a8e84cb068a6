import { describe, expect, test } from 'vitest'

import type { ThreadId } from '../../src/base/ids.ts'
import { engines } from '../support/engines.ts'
import { Installation } from '../support/holdfast.ts'
import { submitted } from '../support/world.ts'
import { demoDaemon, get, post, quickDemo, serve } from './support.ts'

interface Page {
  readonly items: readonly { readonly id: string; readonly [field: string]: unknown }[]
  readonly next?: string
}

describe.each(engines)('on $name', (engine) => {
  const window = async () => serve(await (await engine.database()).open())

  test('runs and threads come in pages that neither overlap nor leave anything out', async () => {
    const { url, store } = await window()
    const runs: string[] = []
    for (let index = 0; index < 5; index++) {
      runs.push((await submitted(store, { threadId: `thread ${index}` as ThreadId })).id)
    }
    const collect = async (path: string) => {
      const found: string[] = []
      for (let after = ''; ;) {
        const { items, next } = (await get(`${url}/api/v1${path}?limit=2${after}`)).body as Page
        found.push(...items.map(({ id }) => id))
        if (next === undefined) return found
        after = `&after=${encodeURIComponent(next)}`
      }
    }
    expect(await collect('/runs')).toEqual(runs.toReversed())
    expect((await collect('/threads')).toSorted()).toEqual([0, 1, 2, 3, 4].map((index) => `thread ${index}`))
    const only = async (query: string) => ((await get(`${url}/api/v1/runs?${query}`)).body as Page).items.length
    expect([await only('state=queued'), await only('state=running,failed'), await only('thread=thread+3')]).toEqual([
      5, 0, 1,
    ])
  })

  test('a message is stored once for its key, in one thread, and another text under it is refused', async () => {
    const { url } = await window()
    const sent = { agent: 'clerk', text: 'hello', key: 'k1' }
    const [first, second] = [await post(`${url}/api/v1/messages`, sent), await post(`${url}/api/v1/messages`, sent)]
    expect([first.status, second.body]).toEqual([201, first.body])
    const { threadId, runId } = first.body as { threadId: string; runId: string }
    expect(first.body).toMatchObject({
      message: { key: 'k1', kind: 'prompt', state: 'pending', body: { text: 'hello' } },
    })
    const conflict = await post(`${url}/api/v1/messages`, { ...sent, text: 'other' })
    expect([conflict.status, conflict.body]).toMatchObject([409, { error: { code: 'messages/key-conflict' } }])
    const more = await post(`${url}/api/v1/messages`, { threadId, text: 'and this' })
    expect(more.body).toMatchObject({ threadId, runId })
    const thread = (await get(`${url}/api/v1/threads/${threadId}`)).body as { messages: { body: unknown }[] }
    expect(thread.messages.map(({ body }) => body)).toEqual([{ text: 'hello' }, { text: 'and this' }])
    const { items } = (await get(`${url}/api/v1/threads`)).body as Page
    expect(items).toMatchObject([{ id: threadId, preview: 'hello', run: { id: runId, state: 'queued' } }])
  })

  test('a queued run is cancelled at once, and a second time is a conflict [runs/cancel-is-final]', async () => {
    const { url, store } = await window()
    const { id } = await submitted(store)
    const first = await post(`${url}/api/v1/runs/${id}/cancel`, { reason: 'changed my mind' })
    expect([first.status, first.body]).toMatchObject([200, { id, state: 'cancelled' }])
    const second = await post(`${url}/api/v1/runs/${id}/cancel`, {})
    expect([second.status, second.body]).toMatchObject([409, { error: { code: 'runs/already-terminal' } }])
  })
})

test('a message for a thread of somebody who is no agent waits in its inbox, and starts nothing', async () => {
  const { url, store } = await serve(await (await engines[0]!.database()).open())
  const { threadId } = await submitted(store)
  const { status, body } = await post(`${url}/api/v1/messages`, { threadId, text: 'hello' })
  expect([status, body]).toMatchObject([201, { threadId, message: { state: 'pending' } }])
  expect(body).not.toHaveProperty('runId')
})

test('the window and the command line tell the same of a run and of a thread', async () => {
  const place = new Installation()
  const { url, token } = await demoDaemon(place, quickDemo())
  const sent = await post(`${url}/api/v1/messages`, { agent: 'clerk', text: 'the same' }, token)
  const { runId, threadId } = sent.body as { runId: string; threadId: string }
  await place.reaches(runId, 'succeeded')
  expect((await get(`${url}/api/v1/runs/${runId}`, token)).body).toEqual(await place.json(['runs', 'show', runId]))
  const thread = (await get(`${url}/api/v1/threads/${threadId}`, token)).body
  expect(thread).toEqual(await place.json(['threads', 'show', threadId]))
  expect(thread).toMatchObject({
    conversation: [{ kind: 'user', text: 'the same' }, { kind: 'assistant' }, { kind: 'assistant' }],
    actions: [{ tool: 'ledger_append', state: 'done', input: { entry: 'the same' } }],
  })
})
