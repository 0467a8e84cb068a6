import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { API } from '../../src/api/endpoint.ts'
import { ENDPOINTS, ENDPOINT_NAMES } from '../../src/api/endpoints.ts'
import { systemClock } from '../../src/base/clock.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import { eventsAfter } from '../../src/events/event.ts'
import { openStore } from '../../src/store/open.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { numbers, happen } from './support.ts'
import { typed } from './in-process.ts'

const place = () => ({ HOLDFAST_HOME: join(temporaryFolder(), 'home') })

test('a backup that is made while others write is a whole database, for its owner, and overwrites nothing', async () => {
  const env = place()
  const file = join(temporaryFolder(), "a copy's.db")
  expect((await typed(['run', '--', 'true'], env)).code).toBe(0)
  const store = await openStore(`sqlite:${join(env.HOLDFAST_HOME, 'holdfast.db')}`, { clock: systemClock, random })
  const enough = new AbortController()
  const writer = (async () => {
    while (!enough.signal.aborted) await store.apply(happen, 5)
  })()
  const made = await typed(['--json', 'backup', file], env)
  enough.abort()
  await writer
  await store.close()
  expect([made.code, JSON.parse(made.stdout)]).toMatchObject([0, { file, bytes: statSync(file).size }])
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const copy = await openStore(`sqlite:${file}`, { clock: systemClock, random })
  expect(await copy.check()).toEqual([])
  await assertInvariants(copy)
  const events = await copy.read(eventsAfter, 0, 100_000)
  expect(events.map(({ seq }) => seq)).toEqual(numbers(1, events.length))
  await copy.close()
  const again = await typed(['backup', file], env)
  expect([again.code, again.stderr]).toEqual([4, expect.stringContaining('files/exists')])
})

test('PostgreSQL has its own tool for that, and is left to it', async () => {
  const store = await (await engines[1]!.database()).open()
  await expect(store.copyTo('/nowhere')).rejects.toThrow('its own tools')
})

test('a new database is for its owner only, whatever the folder is', async () => {
  const env = place()
  await typed(['status'], env)
  expect(statSync(join(env.HOLDFAST_HOME, 'holdfast.db')).mode & 0o777).toBe(0o600)
})

test('a --limit that is no number says how one is written', async () => {
  const env = place()
  for (const list of [
    ['runs', 'list'],
    ['workspace', 'list'],
  ]) {
    const wrong = await typed(['--json', ...list, '--limit', 'many'], env)
    const error = { code: 'usage/limit', remedy: 'as in --limit 20' }
    expect([wrong.code, JSON.parse(wrong.stdout)]).toMatchObject([2, { error }])
  }
})

test('tokens from the command line: made, listed, revoked, and refused where they make no sense', async () => {
  const env = place()
  const made = await typed(['token', 'create', '--scope', 'read', 'approve', '--name', 'ann', '--expires', '30d'], env)
  expect(made.stdout).toMatch(/^hft_[0-9a-f]{64}\n$/)
  const [listed] = JSON.parse((await typed(['--json', 'token', 'list'], env)).stdout) as [Record<string, string>]
  expect(listed).toMatchObject({ name: 'ann', scopes: ['read', 'approve'], expiresAt: expect.any(String) })
  const id = listed['id']!
  expect((await typed(['token', 'revoke', id.slice(4, -3)], env)).stdout).toBe(`${id} revoked\n`)
  expect((await typed(['token', 'revoke', id], env)).code).toBe(4)
  expect((await typed(['token', 'revoke', 'tok_none'], env)).code).toBe(3)
  expect((await typed(['token', 'list'], env)).stdout).toContain('no tokens')
  expect((await typed(['token', 'list', '--all'], env)).stdout).toContain('revoked')
  const run = JSON.parse((await typed(['--json', 'run', '--', 'true'], env)).stdout) as { threadId: string }
  const wrong = await typed(['token', 'create', '--scope', 'read', '--thread', run.threadId], env)
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('only a token to record')])
  const inside = await typed(['token', 'create', '--scope', 'admin'], { ...env, HOLDFAST_RUN: 'run_x' })
  expect([inside.code, inside.stderr]).toEqual([4, expect.stringContaining('decisions/inside-run')])
  expect((await typed(['token', 'code'], env)).stderr).toContain('no daemon is running')
})

test('a message to a thread that was removed begins a new one of its name, and says so', async () => {
  const env = place()
  const said = async (...args: readonly string[]) => (await typed(args, env)).stderr
  expect((await typed(['run', '--thread', 'build', '--', 'true'], env)).code).toBe(0)
  expect(await said('send', 'build', 'hello')).not.toContain('had been removed')
  expect((await typed(['threads', 'remove', 'build'], env)).code).toBe(0)
  expect(await said('send', 'build', 'hello again')).toContain('build had been removed: this begins a new thread')
  expect(await said('send', 'build', 'and again')).not.toContain('had been removed')
  expect(await said('threads', 'remove', 'build')).not.toContain('removed already')
  const { stdout } = await typed(['--json', 'send', 'build', 'once more'], env)
  expect(JSON.parse(stdout)).toMatchObject({ threadId: 'build', anew: true })
})

test('every route is in the reference', () => {
  const text = readFileSync(new URL('../../docs/reference/http.md', import.meta.url), 'utf8')
  const missing = ENDPOINT_NAMES.filter((name) => {
    const { method, path } = ENDPOINTS[name]
    return !text.includes(`\`${method} ${path.replaceAll(/:(\w+)/g, (_, part: string) => part.toUpperCase())}\``)
  })
  expect(missing).toEqual([])
  expect(text).toContain(API)
})
