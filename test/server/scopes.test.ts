import { once } from 'node:events'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'

import { describe, expect, onTestFinished, test } from 'vitest'

import { API, SCOPES } from '../../src/api/endpoint.ts'
import type { Endpoint } from '../../src/api/endpoint.ts'
import { ENDPOINTS, ENDPOINT_NAMES } from '../../src/api/endpoints.ts'
import type { EndpointName } from '../../src/api/endpoints.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { openThread } from '../../src/threads/thread.ts'
import { engines } from '../support/engines.ts'
import { bearer, post, serve } from './support.ts'

const sqlite = engines[0]!

interface Said {
  readonly status: number
  readonly code: string | undefined
}

/** Only the beginning of an answer: a stream has no end. */
async function ask(url: string, name: EndpointName, token: string | undefined, parts = 'nothing'): Promise<Said> {
  const { method, path }: Endpoint = ENDPOINTS[name]
  const headers = { ...(token === undefined ? {} : bearer(token)), 'content-type': 'application/json' }
  const sent = request(`${url}${API}${path.replaceAll(/:\w+/g, parts)}`, { method, headers, agent: false })
  onTestFinished(() => void sent.destroy())
  sent.end(method === 'POST' ? '{}' : undefined)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const status = response.statusCode!
  if (status < 400) {
    response.destroy()
    return { status, code: undefined }
  }
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return { status, code: (JSON.parse(text) as { error: { code: string } }).error.code }
}

/** By hand, and not by the server's own rule: who may come through a door of each kind. */
const WHO_MAY: Readonly<Record<Endpoint['scope'], readonly string[]>> = {
  nobody: ['none', 'record+thread', ...SCOPES],
  anybody: ['record+thread', ...SCOPES],
  read: ['read', 'operate', 'approve', 'admin'],
  operate: ['operate', 'admin'],
  approve: ['approve', 'admin'],
  admin: ['admin'],
  record: ['record', 'admin'],
}

/** What a token for one thread may ask for besides; everything else is closed to it. */
const OWN: readonly EndpointName[] = [
  'threads.show',
  'threads.conversation',
  'messages.send',
  'inbox.list',
  'inbox.drain',
  'inbox.ack',
  'inbox.release',
]

async function house() {
  const store = await (await sqlite.database()).open()
  await store.apply(openThread, 'own' as ThreadId, 'helper', null)
  await store.apply(openThread, 'other' as ThreadId, 'helper', null)
  const { url } = await serve(store)
  const tokens = new Map<string, string | undefined>([['none', undefined]])
  for (const scope of SCOPES) tokens.set(scope, await tokenOf(url, { scopes: [scope] }))
  tokens.set('record+thread', await tokenOf(url, { scopes: ['record'], threadId: 'own' }))
  return { store, url, tokens }
}

async function tokenOf(url: string, wanted: object): Promise<string> {
  const { status, body } = await post(`${url}${API}/tokens`, wanted)
  expect(status).toBe(201)
  return (body as { token: string }).token
}

function expectedOf(name: EndpointName, who: string): 'in' | 'no token' | 'too narrow' {
  // Whoever shows neither a code nor a token is at the door, and not through it.
  if (who === 'none' && name === 'session.open') return 'no token'
  if (who === 'record+thread' && OWN.includes(name)) return 'in'
  if (WHO_MAY[ENDPOINTS[name].scope].includes(who)) return 'in'
  return who === 'none' ? 'no token' : 'too narrow'
}

describe('every route x every scope', () => {
  test('each token opens exactly the doors of its scope, and no token none', async () => {
    const { url, tokens } = await house()
    const wrong: string[] = []
    let asked = 0
    for (const name of ENDPOINT_NAMES) {
      const answers = [...tokens].map(async ([who, token]) => ({ who, token, ...(await ask(url, name, token)) }))
      for (const { who, token, status, code } of await Promise.all(answers)) {
        const expected = expectedOf(name, who)
        const refused = { 'auth/scope': 'too narrow', 'auth/no-token': 'no token' }[code ?? '']
        const isRight = (refused ?? 'in') === expected && (status !== 401 || token === undefined)
        if (!isRight) wrong.push(`${name} with ${who}: ${status} ${code}, expected ${expected}`)
        asked += 1
      }
    }
    expect(wrong).toEqual([])
    expect(asked).toBe(ENDPOINT_NAMES.length * 7)
    expect(ENDPOINT_NAMES.filter((name) => (ENDPOINTS[name] as Endpoint).own === true)).toEqual(OWN)
  })

  test('a schedule that runs a command needs admin, one that calls an address approve; a message is operating', async () => {
    const { url, tokens } = await house()
    const whats = {
      message: { threadId: 'own', text: 'hello' },
      webhook: { webhook: 'https://example.org/hook' },
      command: { command: ['true'], cwd: '/' },
    }
    tokens.set('approve', await tokenOf(url, { scopes: ['operate', 'approve'] }))
    const added: string[] = []
    for (const scope of ['operate', 'approve', 'admin'])
      for (const [what, fields] of Object.entries(whats)) {
        const wanted = { name: `${scope}-${what}`, every: '1h', ...fields }
        const { status, body } = await post(`${url}${API}/schedules`, wanted, tokens.get(scope))
        if (status === 201) added.push(wanted.name)
        else expect([status, (body as { error: { code: string } }).error.code]).toEqual([403, 'auth/scope'])
      }
    const more = ['message', 'webhook', 'command']
    expect(added).toEqual([
      'operate-message',
      'approve-message',
      'approve-webhook',
      ...more.map((what) => `admin-${what}`),
    ])
    // Nor does an edit turn one into the other.
    const edit = (fields: object) => post(`${url}${API}/schedules/operate-message`, fields, tokens.get('operate'))
    expect((await edit({ every: '2h' })).status).toBe(200)
    expect((await edit(whats.command)).status).toBe(403)
    expect((await edit(whats.webhook)).status).toBe(403)
  })

  test('nothing that a GET asks for changes anything', async () => {
    const { store, url, tokens } = await house()
    const { snapshot } = await import('../support/invariants.ts')
    const before = await snapshot(store)
    for (const name of ENDPOINT_NAMES) {
      if (ENDPOINTS[name].method === 'GET') await ask(url, name, tokens.get('admin'), 'own')
    }
    expect(await snapshot(store)).toEqual(before)
  })

  test('a token for one thread sees and writes for that thread, and for no other', async () => {
    const { store, url, tokens } = await house()
    const token = tokens.get('record+thread')!
    for (const threadId of ['own', 'other'] as ThreadId[]) {
      const message = { id: `msg_${threadId}` as never, kind: 'prompt', key: 'k', body: { text: 'hello' } } as const
      await store.apply(acceptMessage, { ...message, threadId })
    }
    for (const name of ['threads.show', 'threads.conversation', 'inbox.list', 'inbox.drain'] as const) {
      expect([name, await ask(url, name, token, 'other')]).toEqual([name, { status: 403, code: 'auth/other-thread' }])
      expect([name, (await ask(url, name, token, 'own')).status]).toEqual([name, 200])
    }
    const drained = await post(`${url}${API}/threads/other/inbox/drain`, {})
    const { delivery } = drained.body as { delivery: string }
    expect((await ask(url, 'inbox.ack', token, delivery)).code).toBe('auth/other-thread')
    expect((await ask(url, 'inbox.release', token, delivery)).code).toBe('auth/other-thread')
    const sent = await post(`${url}${API}/messages`, { threadId: 'other', text: 'from me' }, token)
    expect(sent.body).toMatchObject({ message: { from: 'own', kind: 'note' } })
    const posing = await post(`${url}${API}/messages`, { threadId: 'own', text: 'x', from: 'other' }, token)
    expect(posing.body).toMatchObject({ error: { code: 'auth/other-thread' } })
  })
})
