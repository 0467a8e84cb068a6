import { once } from 'node:events'
import { connect } from 'node:net'

import { expect, onTestFinished, test } from 'vitest'

import { engines } from '../support/engines.ts'
import { TOKEN, serve } from './support.ts'

const sqlite = engines[0]!
const PATHS = ['/', '/api/v1/health', '/api/v1/runs', '/api/v1/events', '/metrics', '/assets/x.js', '/nothing']

/** One request by hand, because every client corrects what it is given. The status, or `cut`. */
async function statusOf(port: number, lines: readonly string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {})
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString()
    // What is let in may be a stream that never ends.
    if (/^HTTP\/1\.1 [2-3]/.test(text)) socket.destroy()
  })
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  await once(socket, 'close')
  return /^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 'cut'
}

/** Names that are not ours, and spellings of ours that are not exactly ours. */
function variants(port: number): string[] {
  const names = ['127.0.0.1', 'localhost', '[::1]']
  const strangers = [
    'evil.example',
    'rebind.network',
    '0.0.0.0',
    '10.0.0.1',
    '169.254.169.254',
    'holdfast',
    'holdfast.local',
    '[::]',
    '[::ffff:127.0.0.1]',
  ]
  const spelled = [
    '127.1',
    '127.0.1',
    '2130706433',
    '0x7f000001',
    '017700000001',
    '127.0.0.01',
    '0127.0.0.1',
    '::1',
    '[0:0:0:0:0:0:0:1]',
    '[::1%25lo]',
    'localhost.',
    'localhost.localdomain',
    'ip6-localhost',
    'lоcalhost',
    'localhost\u0000',
    'local host',
    '127.0.0.1.nip.io',
    'localhost.evil.example',
    'evil.example.localhost',
    'a@localhost',
    'localhost@evil.example',
    'localhost#',
    'localhost/',
    'localhost?',
    '127。0。0。1',
    '127.0.0.1,evil.example',
    'evil.example,127.0.0.1',
  ]
  const ports = [
    '',
    ':',
    ':0',
    ':1',
    ':80',
    ':443',
    `:0${port}`,
    `:+${port}`,
    `:${port}0`,
    `:${port} `.trimEnd() + 'x',
    `: ${port}`,
    `:${port}:${port}`,
    `:${port}@evil.example`,
    `:${port}.evil.example`,
    `:${port},evil.example`,
    `:${port}/`,
    `:${port}#`,
    `:${port}?x`,
    `:0x${port.toString(16)}`,
  ]
  return [
    '',
    ...[...strangers, ...spelled].flatMap((name) => [name, `${name}:${port}`, `${name}:80`, `http://${name}:${port}`]),
    ...names.flatMap((name) => ports.map((suffix) => `${name}${suffix}`)),
    ...names.map((name) => `http://${name}:${port}`),
  ]
}

test('of more than 200 ways to name us wrongly none gets an answer, on any route, with the right token', async () => {
  const { url } = await serve(await (await sqlite.database()).open())
  const port = Number(new URL(url).port)
  const all = [...new Set(variants(port))]
  expect(all.length).toBeGreaterThanOrEqual(200)
  const answered: string[] = []
  for (const [index, host] of all.entries()) {
    const path = PATHS[index % PATHS.length]!
    const lines = [`GET ${path} HTTP/1.1`, `Host: ${host}`, `Authorization: Bearer ${TOKEN}`, 'Connection: close']
    const status = await statusOf(port, lines)
    if (!['403', '400', 'cut'].includes(status)) answered.push(`${JSON.stringify(host)} at ${path}: ${status}`)
  }
  expect(answered).toEqual([])
})

test('two names, none, or a whole address instead of a path do not get past it either', async () => {
  const { url } = await serve(await (await sqlite.database()).open())
  const port = Number(new URL(url).port)
  const own = `Host: 127.0.0.1:${port}`
  const ends = ['Connection: close', `Authorization: Bearer ${TOKEN}`]
  const first = 'GET /api/v1/health HTTP/1.1'
  expect(await statusOf(port, [first, own, ...ends])).toBe('200')
  expect(await statusOf(port, [first, own, 'Host: evil.example', ...ends])).toMatch(/^40[03]$/)
  expect(await statusOf(port, [first, 'Host: evil.example', own, ...ends])).toMatch(/^40[03]$/)
  expect(await statusOf(port, [first, own, own, ...ends])).toMatch(/^40[03]$/)
  expect(await statusOf(port, [first, ...ends])).toBe('400')
  expect(await statusOf(port, [`GET http://evil.example/api/v1/health HTTP/1.1`, own, ...ends])).toBe('403')
  expect(await statusOf(port, [`GET http://127.0.0.1:${port}/api/v1/health HTTP/1.1`, own, ...ends])).toBe('403')
  expect(await statusOf(port, [first, 'Host: evil.example', `X-Forwarded-Host: 127.0.0.1:${port}`, ...ends])).toBe(
    '403',
  )
})
