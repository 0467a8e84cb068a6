import { connect } from 'node:net'
import type { Socket } from 'node:net'

import { expect, onTestFinished, test } from 'vitest'

import { LIMITS } from '../../src/base/limits.ts'
import { engines } from '../support/engines.ts'
import { Installation, until } from '../support/holdfast.ts'
import { TOKEN, ask, bearer, demoDaemon, happen, openStream, serve } from './support.ts'

const sqlite = engines[0]!

/** Somebody who begins to say something and does not go on. */
function slowly(port: number, words: string): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.on('connect', () => void socket.write(words))
  onTestFinished(() => void socket.destroy())
  return socket
}

const BEGINNINGS = [
  '',
  'GET / HTTP/1.1\r\n',
  'GET /api/v1/runs HTTP/1.1\r\nHost: 127',
  `POST /api/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
]

test('2,000 slow sockets, and health still answers within a second', async () => {
  const place = new Installation()
  const { url } = await demoDaemon(place)
  const port = Number(new URL(url).port)
  const sockets = Array.from({ length: 2_000 }, (_, index) =>
    slowly(port, BEGINNINGS[index % BEGINNINGS.length]!.replace('PORT', String(port))),
  )
  await until('all of them have come in or been shown out', () =>
    Promise.resolve(sockets.every(({ connecting }) => !connecting) ? true : undefined),
  )
  expect(sockets.filter(({ destroyed }) => !destroyed).length).toBeGreaterThan(100)
  // On a busy machine one look may be late; a door that is held shut is late each time.
  const quick = await until('health answers within a second', async () => {
    const before = performance.now()
    const { status } = await ask(`${url}/api/v1/health`)
    expect(status).toBe(200)
    return performance.now() - before < 1_000 ? true : undefined
  })
  expect(quick).toBe(true)
})

test('who asks is not shown out for those who only stand there, and a stream stays open', async () => {
  const { url, store } = await serve(await (await sqlite.database()).open())
  const port = Number(new URL(url).port)
  const reader = await openStream(url, 0)
  const crowd = Array.from({ length: LIMITS.connections + 50 }, () => slowly(port, 'GET / HT'))
  await until('the crowd is larger than the house', () =>
    Promise.resolve(crowd.filter(({ destroyed }) => destroyed).length > 40 ? true : undefined),
  )
  await store.apply(happen, 3)
  await reader.has(3)
  expect(reader.ended).toBeUndefined()
})

test('headers that are too long, and bodies, are refused before anybody reads them', async () => {
  const { url } = await serve(await (await sqlite.database()).open())
  const long = await ask(`${url}/api/v1/health`, { headers: { 'x-long': 'x'.repeat(LIMITS.headerBytes) } })
  expect(long.status).toBe(431)
  const body = 'x'.repeat(LIMITS.requestBytes + 1)
  const headers = { ...bearer(), 'content-type': 'application/json' }
  expect((await ask(`${url}/api/v1/messages`, { method: 'POST', headers, body })).status).toBe(413)
})

test('more requests at once than we answer are told when to come back, and health is none of them', async () => {
  const { url } = await serve(await (await sqlite.database()).open())
  const port = Number(new URL(url).port)
  const begun = BEGINNINGS[3]!.replace('PORT', String(port))
  for (let index = 0; index < LIMITS.requestsAtOnce; index++) slowly(port, begun)
  const refused = await until('one is too many', async () => {
    const answer = await ask(`${url}/api/v1/runs`, { headers: bearer() })
    return answer.status === 429 ? answer : undefined
  })
  expect(refused.body).toMatchObject({ error: { code: 'capacity/requests', retry: { afterMs: 1_000 } } })
  expect(refused.headers['retry-after']).toBe('1')
  expect((await ask(`${url}/api/v1/health`)).status).toBe(200)
})
