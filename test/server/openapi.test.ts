import { join } from 'node:path'

import { describe, expect, test } from 'vitest'
import type { z } from 'zod'

import { API } from '../../src/api/endpoint.ts'
import type { Endpoint } from '../../src/api/endpoint.ts'
import { ENDPOINTS, ENDPOINT_NAMES } from '../../src/api/endpoints.ts'
import type { EndpointName } from '../../src/api/endpoints.ts'
import { createClient } from '../../src/api/client.ts'
import { ROUTES } from '../../src/api/routes.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { thisPlace } from '../../src/processes/identity.ts'
import type { Store } from '../../src/store/store.ts'
import { activateWorkspace, openWorkspace } from '../../src/workspace/open.ts'
import { prepareWorkspace } from '../../src/workspace/prepare.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { buryUntaken } from '../../src/threads/dead-letter.ts'
import { removeThread } from '../../src/threads/remove.ts'
import { openThread } from '../../src/threads/thread.ts'
import { engines } from '../support/engines.ts'
import { Repository } from '../support/repository.ts'
import { Stage } from '../support/stage.ts'
import { running, submitted } from '../support/world.ts'
import { TOKEN, get, post, serve } from './support.ts'

const sqlite = engines[0]!

/** A little of everything: a run that waits, one in doubt, a command, a dead letter, a token. */
async function house() {
  const stage = new Stage(await (await sqlite.database()).open())
  const { store } = stage
  stage.policy = []
  stage.replies = [
    { text: 'I say.', calls: ['a', 'b'].map((entry) => ['append', { entry }] as const) },
    { text: 'Done.' },
  ]
  const { runId } = await stage.send('go')
  await stage.run(await stage.claim())
  const doubting = new Stage(store)
  doubting.threadId = 'doubting' as ThreadId
  doubting.doubts = 'park'
  doubting.perform = () => Promise.reject(new Error('the connection was cut'))
  doubting.replies = [{ calls: [['append', { entry: 'c' }]] }, { text: 'So it is.' }]
  await doubting.send('go')
  await doubting.run(await doubting.claim())
  await submitted(store)
  await store.apply(openThread, 'gone' as ThreadId, 'helper', null)
  const lost = {
    id: 'msg_lost' as never,
    threadId: 'gone' as ThreadId,
    kind: 'prompt',
    key: 'k',
    body: { text: 'x' },
  } as const
  await store.apply(acceptMessage, lost)
  await store.apply(removeThread, 'gone' as ThreadId)
  await store.apply(buryUntaken, 10)
  const worked = await withFiles(store)
  const { url } = await serve(store)
  await post(`${url}${API}/tokens`, { scopes: ['read'], name: 'ci' })
  const api = createClient({ url, token: TOKEN })
  const job = {
    name: 'nightly',
    cron: '30 2 * * *',
    zone: 'Europe/Berlin',
    misfire: 'each:3',
    until: '2100-01-01T00:00Z',
  }
  await api.call('schedules.add', { ...job, agent: 'clerk', text: 'the report', maxCostUsd: 1 })
  await api.call('followups.add', { threadId: stage.threadId, text: 'and then?', in: '2h', reason: 'to look again' })
  return { url, api, runId: runId!, threadId: stage.threadId, worked }
}

/** A run whose work is a commit that was checked and waits. */
async function withFiles(store: Store): Promise<string> {
  const repo = new Repository()
  const { ref } = await running(store)
  const place = {
    folder: '/nowhere',
    repo: join(repo.folder, '.git'),
    top: repo.folder,
    prefix: '',
    branch: 'refs/heads/main',
  }
  const request = { root: repo.folder, mode: 'transaction' } as const
  const base = repo.head
  await store.apply(openWorkspace, ref, { request, host: thisPlace().host, base, ...place })
  await store.apply(activateWorkspace, ref)
  repo.write('total.txt', '2\n')
  const work = repo.commit('more')
  const changes = { changed: ['total.txt'], changedCount: 1, linesAdded: 1, linesRemoved: 1 }
  await store.apply(prepareWorkspace, ref, { work, ...changes, leftOut: [{ path: 'x', why: 'y' }], leftOutCount: 1 })
  return ref.runId
}

describe('what is answered is what is described', () => {
  test('every JSON that a GET answers has the shape of its schema, and no field that nobody has described', async () => {
    const { url, api, runId, threadId, worked } = await house()
    const approval = (await api.call('approvals.list', {})).items[0]!.id
    const doubt = (await api.call('doubts.list', {})).items[0]!.id
    const action = (await api.call('actions.list', {})).items[0]!.id
    const message = (await api.call('messages.list', { state: ['consumed'] })).items[0]!.id
    const { id: occurrence, scheduleId: schedule } = await api.call('schedules.run-now', { schedule: 'nightly' })
    const own = { schedule, occurrence }
    const parts: Record<string, string> = { run: runId, thread: threadId, approval, doubt, action, message, ...own }
    let looked = 0
    for (const name of ENDPOINT_NAMES) {
      const { method, path, answers }: Endpoint = ENDPOINTS[name]
      if (method !== 'GET' || answers !== undefined) continue
      const others =
        name === 'dead.show' ? { message: 'msg_lost' } : name.startsWith('workspaces') ? { run: worked } : {}
      const filled: Record<string, string> = { ...parts, ...others }
      const { status, body } = await get(
        `${url}${API}${path.replaceAll(/:(\w+)/g, (_, part: string) => filled[part] ?? '')}`,
      )
      expect([name, status]).toEqual([name, 200])
      const parsed = (ROUTES[name].answer as z.ZodType).safeParse(body)
      expect([name, parsed.error?.issues]).toEqual([name, undefined])
      expect([name, parsed.data]).toEqual([name, body])
      if (Array.isArray((body as { items?: unknown }).items) && !EMPTY.includes(name))
        expect([name, (body as { items: unknown[] }).items.length]).not.toEqual([name, 0])
      looked += 1
    }
    expect(looked).toBeGreaterThan(25)
  })

  test('the document names every route, its fields, its answer and its scope', async () => {
    const { url } = await serve(await (await sqlite.database()).open())
    const { body } = await get(`${url}${API}/openapi.json`)
    const { openapi, paths } = body as {
      openapi: string
      paths: Record<
        string,
        Record<string, { operationId: string; description: string; parameters: { name: string }[]; responses: object }>
      >
    }
    expect(openapi).toBe('3.1.0')
    const operations = Object.values(paths).flatMap((path) => Object.values(path))
    expect(operations.map(({ operationId }) => operationId).toSorted()).toEqual([...ENDPOINT_NAMES].toSorted())
    const runs = paths[`${API}/runs`]!['get']!
    expect(runs.parameters.map(({ name }) => name)).toEqual(['limit', 'after', 'state', 'thread', 'agent'])
    expect(runs.description).toContain('read or operate or approve or admin')
    expect(JSON.stringify(runs.responses)).toContain('"costUsd"')
    expect(paths[`${API}/approvals/{approval}`]!['post']).toMatchObject({
      requestBody: {
        required: true,
        content: { 'application/json': { schema: { required: ['decision', 'digest'] } } },
      },
    })
    // Nothing points to what is not there.
    const text = JSON.stringify(body)
    for (const [, reference] of text.matchAll(/"\$ref":"([^"]+)"/g)) expect(reference).toMatch(/^#/)
  })
})

/** Of these a quiet house has none. */
const EMPTY: readonly EndpointName[] = [
  'quotas.list',
  'breakers.list',
  'policy.list',
  'hooks.status',
  'messages.list',
  'inbox.list',
  'series',
]
