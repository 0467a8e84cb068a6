import { describe, expect, test } from 'vitest'

import { engines } from '../support/engines.ts'
import { TOKEN, ask, bearer, get, post, serve } from './support.ts'

const sqlite = engines[0]!
const window = async () => serve(await (await sqlite.database()).open())

const code = (body: unknown) => (body as { error?: { code?: string } }).error?.code

describe('the token', () => {
  test('nothing under /api is told without it, and the answer says what to do', async () => {
    const { url } = await window()
    for (const path of ['/agents', '/threads', '/threads/x', '/runs', '/runs/x', '/events', '/nothing']) {
      const { status, headers, body } = await ask(`${url}/api/v1${path}`)
      expect([path, status, code(body)]).toEqual([path, 401, 'auth/no-token'])
      expect(headers['www-authenticate']).toBe('Bearer')
      expect(JSON.stringify(body)).toContain('home folder')
    }
    const posted = await ask(`${url}/api/v1/messages`, { method: 'POST', body: '{}' })
    expect(posted.status).toBe(401)
  })

  test.each([
    `Bearer ${TOKEN}x`,
    `Bearer ${TOKEN.slice(1)}`,
    `Bearer ${TOKEN.slice(0, -1)}`,
    'Bearer',
    `Basic ${TOKEN}`,
    TOKEN,
  ])('%s does not open the door', async (authorization) => {
    const { url } = await window()
    expect((await ask(`${url}/api/v1/agents`, { headers: { authorization } })).status).toBe(401)
  })

  test('in an address it does not count, so that it is in no log', async () => {
    const { url } = await window()
    expect((await ask(`${url}/api/v1/agents?token=${TOKEN}`)).status).toBe(401)
    expect((await get(`${url}/api/v1/agents`)).body).toEqual({ items: [{ name: 'clerk' }] })
  })

  test('health and the page need none and tell no secret', async () => {
    const { url, instance } = await window()
    expect((await ask(`${url}/api/v1/health`)).body).toEqual({ status: 'ok', instance })
    const page = await ask(`${url}/`)
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(page.body).not.toContain(TOKEN)
  })
})

describe('whose page it is', () => {
  test.each(['evil.example', 'evil.example:80', '127.0.0.1', '127.0.0.1:1', 'localhost.evil.example'])(
    'a name that is not ours is refused, however it was made to point here: "%s"',
    async (host) => {
      const { url } = await window()
      for (const path of ['/', '/api/v1/health', '/api/v1/agents']) {
        const answer = await ask(`${url}${path}`, { headers: { ...bearer(), host } })
        expect([path, answer.status, code(answer.body)]).toEqual([path, 403, 'auth/foreign-host'])
      }
    },
  )

  test('each of our own names is served', async () => {
    const { url } = await window()
    const { port } = new URL(url)
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`, `LOCALHOST:${port}`]) {
      expect((await ask(`${url}/api/v1/agents`, { headers: { ...bearer(), host } })).status).toBe(200)
    }
  })

  test('a page of another origin can send nothing, not even with the token', async () => {
    const { url } = await window()
    const { port } = new URL(url)
    const sending = (origin: string) =>
      ask(`${url}/api/v1/messages`, {
        method: 'POST',
        headers: { ...bearer(), origin, 'content-type': 'application/json' },
        body: JSON.stringify({ agent: 'clerk', text: 'hello' }),
      })
    for (const origin of ['http://evil.example', 'null', 'http://127.0.0.1:1', `https://127.0.0.1:${port}`]) {
      expect(code((await sending(origin)).body)).toBe('auth/foreign-origin')
    }
    expect((await sending(`http://localhost:${port}`)).status).toBe(201)
  })

  test('every answer forbids framing, sniffing, referrers and foreign scripts, and allows no other origin', async () => {
    const { url } = await window()
    const paths = ['/', '/main.js', '/api/v1/health', '/api/v1/agents', '/api/v1/runs', '/api/v1/nothing', '/nothing']
    for (const path of paths) {
      const { headers } = await ask(`${url}${path}`, { headers: { origin: 'http://evil.example' } })
      expect(headers['content-security-policy']).toContain("frame-ancestors 'none'")
      expect(headers['content-security-policy']).toContain("script-src 'self';")
      expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' })
      expect(headers['access-control-allow-origin']).toBeUndefined()
    }
  })
})

describe('requests that are wrong', () => {
  const wrong: readonly (readonly [string, unknown, number, string])[] = [
    ['no recipient', { text: 'hello' }, 400, 'usage/request'],
    ['two recipients', { agent: 'clerk', threadId: 'x', text: 'hello' }, 400, 'usage/request'],
    ['no text', { agent: 'clerk' }, 400, 'usage/no-text'],
    ['only blanks', { agent: 'clerk', text: ' \n' }, 400, 'usage/no-text'],
    ['a text that is none', { agent: 'clerk', text: 7 }, 400, 'usage/request'],
    ['an unknown field', { agent: 'clerk', text: 'hello', urgent: true }, 400, 'usage/request'],
    ['an unknown agent', { agent: 'nobody', text: 'hello' }, 404, 'not-found/agent'],
    ['an unknown thread', { threadId: 'nobody', text: 'hello' }, 404, 'not-found/thread'],
    ['a list', [], 400, 'usage/request'],
    ['too much', { agent: 'clerk', text: 'x'.repeat(300_000) }, 413, 'usage/body-too-large'],
  ]
  test.each(wrong)('%s is told by a code', async (_, body, status, expected) => {
    const { url } = await window()
    const answer = await post(`${url}/api/v1/messages`, body)
    expect([answer.status, code(answer.body)]).toEqual([status, expected])
  })

  test('what is not JSON is not guessed at', async () => {
    const { url } = await window()
    const sent = (type: string, body: string) =>
      ask(`${url}/api/v1/messages`, { method: 'POST', headers: { ...bearer(), 'content-type': type }, body })
    expect((await sent('text/plain', '{"agent":"clerk","text":"hello"}')).status).toBe(415)
    expect((await sent('application/json', '{"agent":')).status).toBe(400)
  })

  test('a body that comes in chunks is read like any other, up to the limit', async () => {
    const { url } = await window()
    const headers = { ...bearer(), 'content-type': 'application/json', 'transfer-encoding': 'chunked' }
    const sent = (body: string) => ask(`${url}/api/v1/messages`, { method: 'POST', headers, body })
    expect((await sent('{"agent":"clerk","text":"hello"}')).status).toBe(201)
    expect(code((await sent('{"agent":')).body)).toBe('usage/request')
    const { status, body } = await sent(`{"agent":"clerk","text":"${'x'.repeat(300_000)}"}`)
    expect([status, code(body)]).toEqual([413, 'usage/body-too-large'])
  })

  test('unknown ids and routes are 404 in JSON', async () => {
    const { url } = await window()
    for (const path of ['/threads/x', '/runs/x', '/runs?after=x', '/threads?after=x', '/runs?thread=x', '/nothing']) {
      const { status, body } = await get(`${url}/api/v1${path}`)
      expect([path, status, code(body)?.split('/')[0]]).toEqual([path, 404, 'not-found'])
    }
    expect((await post(`${url}/api/v1/runs/x/cancel`, {})).status).toBe(404)
    expect((await ask(`${url}/../package.json`)).status).toBe(404)
  })

  test('limits, states and numbers are checked', async () => {
    const { url } = await window()
    for (const path of ['/runs?limit=0', '/runs?limit=x', '/runs?limit=5000', '/runs?state=dead', '/events?after=-1']) {
      const { status, body } = await get(`${url}/api/v1${path}`)
      expect([path, status, code(body)]).toEqual([path, 400, 'usage/request'])
    }
  })
})
