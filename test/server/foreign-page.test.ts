import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'

import { chromium } from 'playwright-core'
import type { BrowserContext } from 'playwright-core'
import { describe, expect, onTestFinished, test } from 'vitest'

import { API } from '../../src/api/endpoint.ts'
import { engines } from '../support/engines.ts'
import { snapshot } from '../support/invariants.ts'
import { post, serve } from './support.ts'

const sqlite = engines[0]!
const CHROMIUM = process.env['HOLDFAST_CHROMIUM'] ?? '/usr/bin/chromium'
const missing = !existsSync(CHROMIUM)
if (missing) console.log(`No browser at ${CHROMIUM}: the test of foreign pages is skipped.`)

/** The page of somebody else, on a port of this machine: for cookies that is the same site. */
async function elsewhere(): Promise<number> {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/html' })
    response.end('<!doctype html><title>elsewhere</title><body></body>')
  }).listen(0)
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function browser(): Promise<BrowserContext> {
  // Names of others that point here, as an attacker's name server would say.
  const rules = '--host-resolver-rules=MAP evil.test 127.0.0.1, MAP rebind.test 127.0.0.1'
  const found = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', rules] })
  onTestFinished(() => found.close())
  return found.newContext()
}

/** What a page can try without anybody's help. Says what it got to see. */
const ATTEMPTS = async ({ target, api }: { target: string; api: string }): Promise<string[]> => {
  const got: string[] = []
  const message = JSON.stringify({ agent: 'clerk', text: 'from elsewhere' })
  const page = globalThis as unknown as {
    document: { body: { append(node: unknown): void }; createElement(name: string): Record<string, unknown> }
    WebSocket: new (url: string) => Record<string, unknown>
    EventSource: new (url: string, options: object) => Record<string, unknown>
  }
  const tryFetch = async (name: string, path: string, init: object): Promise<void> => {
    try {
      const answer = await fetch(`${target}${api}${path}`, { credentials: 'include', ...init })
      if (answer.type !== 'opaque') got.push(`${name}: ${answer.status} ${(await answer.text()).slice(0, 80)}`)
    } catch {
      // As it should be.
    }
  }
  const json = { 'Content-Type': 'application/json', 'X-Holdfast': '1' }
  await tryFetch('read', '/runs', {})
  await tryFetch('read with header', '/runs', { headers: { 'X-Holdfast': '1' } })
  await tryFetch('blind read', '/runs', { mode: 'no-cors' })
  await tryFetch('send', '/messages', { method: 'POST', headers: json, body: message })
  await tryFetch('blind send', '/messages', { method: 'POST', mode: 'no-cors', body: message })
  await tryFetch('sign out', '/session/close', { method: 'POST', mode: 'no-cors', body: '{}' })
  await tryFetch('method', '/messages', { method: 'PUT', headers: json, body: message })
  const settled = (element: Record<string, unknown>, good: string, name: string, bad = 'onerror') =>
    new Promise<void>((resolve) => {
      element[good] = () => (got.push(name), resolve())
      element[bad] = () => resolve()
      setTimeout(resolve, 2_000)
    })
  const image = page.document.createElement('img')
  const imaged = settled(image, 'onload', 'image')
  image['src'] = `${target}/icon.svg`
  const script = page.document.createElement('script')
  const scripted = settled(script, 'onload', 'script')
  script['src'] = `${target}${api}/runs`
  page.document.body.append(script)
  const socket = new page.WebSocket(`${target.replace('http', 'ws')}${api}/events`)
  const source = new page.EventSource(`${target}${api}/events`, { withCredentials: true })
  await Promise.all([
    imaged,
    scripted,
    settled(socket, 'onopen', 'web socket'),
    settled(source, 'onopen', 'event source'),
  ])
  const form = page.document.createElement('form')
  Object.assign(form, { method: 'POST', enctype: 'text/plain', action: `${target}${api}/messages`, target: 'frame' })
  const frame = page.document.createElement('iframe')
  frame['name'] = 'frame'
  page.document.body.append(frame)
  page.document.body.append(form)
  const field = page.document.createElement('input')
  Object.assign(field, { name: message.slice(0, -1), value: '}' })
  ;(form['append'] as (node: unknown) => void).call(form, field)
  const submitted = settled(frame, 'onload', 'nothing to see')
  ;(form['submit'] as () => void).call(form)
  await submitted
  return got.filter((each) => each !== 'nothing to see')
}

describe.skipIf(missing)('a page of another origin, in a browser that is signed in here', () => {
  test('achieves nothing: not by a form, fetch, image, web socket, event source, frame or a name that points here', async () => {
    const store = await (await sqlite.database()).open()
    const { url } = await serve(store)
    const port = new URL(url).port
    const context = await browser()
    const { code } = (await post(`${url}${API}/session/code`, {})).body as { code: string }
    const own = await context.newPage()
    await own.goto(`${url}/`)
    const signIn = async ({ api, given }: { api: string; given: string }) => {
      const body = JSON.stringify({ code: given })
      const headers = { 'Content-Type': 'application/json', 'X-Holdfast': '1' }
      await fetch(`${api}/session`, { method: 'POST', headers, body })
      return (await fetch(`${api}/runs`, { headers })).status
    }
    expect(await own.evaluate(signIn, { api: API, given: code })).toBe(200)

    const before = await snapshot(store)
    const there = await elsewhere()
    const origins = ['127.0.0.1', 'localhost', 'evil.test'].map((name) => `http://${name}:${there}`)
    const targets = [url, `http://localhost:${port}`, `http://evil.test:${port}`]
    const tries = origins.flatMap((origin) =>
      targets.map(async (target) => {
        const page = await context.newPage()
        await page.goto(`${origin}/`)
        expect([origin, target, await page.evaluate(ATTEMPTS, { target, api: API })]).toEqual([origin, target, []])
        await page.close()
      }),
    )
    await Promise.all(tries)
    const rebound = await context.newPage()
    for (const path of ['/', `${API}/health`, `${API}/runs`]) {
      expect((await rebound.goto(`http://rebind.test:${port}${path}`))?.status()).toBe(403)
    }
    expect(await snapshot(store)).toEqual(before)
    // And the one who is signed in still is.
    const stillIn = (api: string) =>
      fetch(`${api}/runs`, { headers: { 'X-Holdfast': '1' } }).then(({ status }) => status)
    expect(await own.evaluate(stillIn, API)).toBe(200)
  })
})
