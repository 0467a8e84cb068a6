import { once } from 'node:events'
import { existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { API } from '../../src/api/endpoint.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { engines } from '../support/engines.ts'
import { Installation, until } from '../support/holdfast.ts'
import { Reader, TOKEN, ask, bearer, demoDaemon, get, happen, openStream, post, serve } from './support.ts'

const sqlite = engines[0]!
const code = (body: unknown) => (body as { error?: { code?: string } }).error?.code

interface Made {
  readonly id: string
  readonly token: string
}

const create = async (url: string, wanted: object) => (await post(`${url}${API}/tokens`, wanted)).body as Made

describe.each(engines)('tokens on $name', (engine) => {
  const house = async () => serve(await (await engine.database()).open())

  test('a token works until it is revoked, and then neither it nor a stream that it opened goes on', async () => {
    const { url, store } = await house()
    const { id, token } = await create(url, { scopes: ['read'], name: 'ci' })
    expect(token).toMatch(/^hft_[0-9a-f]{64}$/)
    expect((await get(`${url}${API}/runs`, token)).status).toBe(200)
    const reader = await openStream(url, 0, token)
    await reader.has(1)
    const [listed] = ((await get(`${url}${API}/tokens`)).body as { items: object[] }).items
    expect(listed).toMatchObject({ id, name: 'ci', kind: 'token', scopes: ['read'], createdBy: 'the owner' })
    expect(JSON.stringify(listed)).not.toContain(token)
    expect((await post(`${url}${API}/tokens/${id}/revoke`, {})).status).toBe(200)
    expect(code((await get(`${url}${API}/runs`, token)).body)).toBe('auth/wrong-token')
    await store.apply(happen, 1)
    await until('the stream ends', () => Promise.resolve(reader.ended))
    expect(reader.events.map(({ type }) => type)).not.toContain('breaker.reset')
    expect(code((await post(`${url}${API}/tokens/${id}/revoke`, {})).body)).toBe('tokens/already-revoked')
    expect(((await get(`${url}${API}/tokens`)).body as { items: object[] }).items).toEqual([])
  })

  test('the database has none of their texts, and says who did what through which', async () => {
    const { url, store } = await house()
    const { id, token } = await create(url, { scopes: ['admin'], name: 'ops' })
    const other = (await post(`${url}${API}/tokens`, { scopes: ['read'] }, token)).body as Made
    await post(`${url}${API}/tokens/${other.id}/revoke`, {}, token)
    // Nothing happened, so nobody did it.
    expect((await post(`${url}${API}/deliveries/dlv_nothing/ack`, {}, token)).status).toBe(404)
    const { snapshot, assertInvariants } = await import('../support/invariants.ts')
    await assertInvariants(store)
    const everything = JSON.stringify(await snapshot(store))
    for (const secret of [token, other.token, TOKEN]) expect(everything).not.toContain(secret)
    const { items } = (await get(`${url}${API}/audit`)).body as { items: object[] }
    expect(items).toMatchObject([
      { call: 'tokens.revoke', on: other.id, by: 'token "ops"', via: 'HTTP', tokenId: id, outcome: 'revoked' },
      { call: 'tokens.create', by: 'token "ops"', tokenId: id },
      { call: 'tokens.create', by: 'the owner' },
    ])
  })

  test('one for a while is good for that while', async () => {
    const { url } = await house()
    const { token } = await create(url, { scopes: ['read'], expiresInMs: 1 })
    await until('it has run out', async () =>
      (await get(`${url}${API}/runs`, token)).status === 401 ? true : undefined,
    )
  })
})

describe('a browser signs in', () => {
  const cookieOf = (headers: IncomingMessage['headers']) => headers['set-cookie']?.[0] ?? ''
  const signIn = (url: string, body: object, headers = {}) =>
    ask(`${url}${API}/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  const codeFrom = async (url: string) => ((await post(`${url}${API}/session/code`, {})).body as { code: string }).code

  test('with a code that is good once; the cookie needs the header of our page, and ends when it is closed', async () => {
    const { url } = await serve(await (await sqlite.database()).open())
    const given = await codeFrom(url)
    const { status, headers, body } = await signIn(url, { code: given.toUpperCase().replaceAll('-', ' ') })
    expect([status, body]).toMatchObject([200, { scopes: ['admin'] }])
    expect(cookieOf(headers)).toMatch(
      /^holdfast_\d+=hft_[0-9a-f]{64}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/,
    )
    expect(code((await signIn(url, { code: given })).body)).toBe('auth/wrong-code')
    const cookie = cookieOf(headers).split(';')[0]!
    const withCookie = (more: object, path = '/runs') => ask(`${url}${API}${path}`, { headers: { cookie, ...more } })
    expect(code((await withCookie({})).body)).toBe('auth/no-page-header')
    expect((await withCookie({ 'x-holdfast': '1' })).status).toBe(200)
    // What a browser got is no token for programs.
    expect((await get(`${url}${API}/runs`, cookie.split('=')[1])).status).toBe(401)
    const closed = await ask(`${url}${API}/session/close`, { method: 'POST', headers: { cookie, 'x-holdfast': '1' } })
    expect(closed.body).toEqual({ closed: true })
    expect((await withCookie({ 'x-holdfast': '1' })).status).toBe(401)
  })

  test('a code runs out, and guessing ends in waiting', async () => {
    const clock = new FakeClock()
    const { url } = await serve(await (await sqlite.database()).open(), { clock })
    const given = await codeFrom(url)
    clock.advance(LIMITS.signInCodeMs + 1)
    expect(code((await signIn(url, { code: given })).body)).toBe('auth/wrong-code')
    for (let tries = 1; tries < LIMITS.signInTries; tries++) await signIn(url, { code: 'aaaa-aaaa-aaaa-aaaa' })
    const { status, headers } = await signIn(url, { code: await codeFrom(url) })
    expect([status, Number(headers['retry-after'])]).toEqual([429, expect.any(Number)])
    clock.advance(LIMITS.signInTriesMs + 1)
    expect((await signIn(url, { code: await codeFrom(url) })).status).toBe(200)
  })

  test('a token signs in with no more than its own scope', async () => {
    const { url } = await serve(await (await sqlite.database()).open())
    const { token } = await create(url, { scopes: ['read'] })
    const { headers, body } = await signIn(url, {}, bearer(token))
    expect(body).toMatchObject({ scopes: ['read'] })
    const page = { cookie: cookieOf(headers).split(';')[0]!, 'x-holdfast': '1', 'content-type': 'application/json' }
    const sent = await ask(`${url}${API}/messages`, {
      method: 'POST',
      headers: page,
      body: '{"agent":"clerk","text":"x"}',
    })
    expect(code(sent.body)).toBe('auth/scope')
    expect((await signIn(url, {})).status).toBe(401)
  })

  describe.each(engines)('with a token, on $name', (engine) => {
    /** A page, as the browser sees it that shows the cookie. */
    async function signedIn(wanted: object) {
      const clock = new FakeClock()
      const { url, store } = await serve(await (await engine.database()).open({ clock }))
      const made = await create(url, { scopes: ['approve'], ...wanted })
      const { headers } = await signIn(url, {}, bearer(made.token))
      const page = { cookie: cookieOf(headers).split(';')[0]!, 'x-holdfast': '1' }
      const look = async () => (await ask(`${url}${API}/runs`, { headers: page })).status
      expect(await look()).toBe(200)
      return { url, store, clock, made, page, look }
    }
    const listed = async (url: string) => ((await get(`${url}${API}/tokens`)).body as { items: object[] }).items

    test('and is signed out when that is revoked', async () => {
      const { url, store, made, look } = await signedIn({})
      expect(await listed(url)).toHaveLength(2)
      await post(`${url}${API}/tokens/${made.id}/revoke`, {})
      expect(await look()).toBe(401)
      expect(await listed(url)).toEqual([])
      const { assertInvariants } = await import('../support/invariants.ts')
      await assertInvariants(store)
    })

    test('and is signed out when that runs out', async () => {
      const { url, clock, look } = await signedIn({ expiresInMs: 600_000 })
      clock.step(600_000)
      expect(await look()).toBe(401)
      expect(await listed(url)).toEqual([])
    })

    test('and signs in no other, nor itself for longer', async () => {
      const { url, page, look } = await signedIn({})
      const { status, headers, body } = await signIn(url, {}, page)
      expect([status, code(body), headers['set-cookie']]).toEqual([400, 'usage/request', undefined])
      expect(await look()).toBe(200)
    })
  })
})

test('the files of the tokens are read again: another content counts at once, and the old one ends', async () => {
  const place = new Installation()
  const { url, token, process: daemon } = await demoDaemon(place)
  const file = join(place.home, 'token')
  expect(statSync(join(place.home, 'record-token')).mode & 0o777).toBe(0o600)
  const recorder = readFileSync(join(place.home, 'record-token'), 'utf8').trim()
  expect(code((await get(`${url}${API}/runs`, recorder)).body)).toBe('auth/scope')
  const sent = request(`${url}${API}/events`, { agent: false, headers: bearer(token) }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const reader = new Reader(response)
  writeFileSync(file, `${'b'.repeat(64)}\n`)
  expect((await get(`${url}${API}/runs`, token)).status).toBe(401)
  await post(`${url}${API}/messages`, { agent: 'clerk', text: 'news' }, 'b'.repeat(64))
  await until('the stream of the old token ends', () => Promise.resolve(reader.ended))
  rmSync(file)
  expect((await get(`${url}${API}/runs`, 'b'.repeat(64))).status).toBe(401)
  daemon.kill('SIGTERM')
  await daemon.ended
  await demoDaemon(place)
  expect(readFileSync(file, 'utf8').trim()).toMatch(/^[0-9a-f]{64}$/)
})

test('no token is in what the daemon says, in its files, or in an address; and a made token makes no owner', async () => {
  const place = new Installation()
  const first = await demoDaemon(place)
  const made = await place.json<Made>(['token', 'create', '--scope', 'record'])
  const signedIn = await place.run(['token', 'code'])
  expect(signedIn.stdout).toMatch(new RegExp(`^${first.url}/#code=[0-9a-z-]{19}\n$`))
  await get(`${first.url}${API}/runs?x=1`, made.token)
  await get(`${first.url}${API}/nothing`, first.token)
  await post(`${first.url}${API}/messages`, { agent: 'clerk', text: 'hello' }, first.token)
  first.process.kill('SIGTERM')
  const { stdout, stderr } = await first.process.ended
  for (const secret of [first.token, made.token]) expect(`${stdout}${stderr}`).not.toContain(secret)
  for (const name of readdirSync(place.home, { recursive: true, encoding: 'utf8' })) {
    const path = join(place.home, name)
    if (!existsSync(path) || !statSync(path).isFile() || name === 'token') continue
    const content = readFileSync(path, 'latin1')
    for (const secret of [first.token, made.token]) expect([name, content.includes(secret)]).toEqual([name, false])
  }
  const daemon = place.start(['up', '--port', '0'], { HOLDFAST_TOKEN: made.token })
  await daemon.said('holdfast: window:')
  const { url } = JSON.parse(readFileSync(join(place.home, 'daemon.json'), 'utf8')) as { url: string }
  expect(code((await get(`${url}${API}/runs`, made.token)).body)).toBe('auth/scope')
  expect((await get(`${url}${API}/runs`, first.token)).status).toBe(200)
})
