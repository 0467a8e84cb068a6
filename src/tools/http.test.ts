import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../base/clock.ts'
import type { ActionId } from '../base/ids.ts'
import type { ToolContext } from '../loop/ports.ts'
import { isPrivate } from './addresses.ts'
import { httpTools, type HttpOptions } from './http.ts'
import { TOOL_LIMITS } from './limits.ts'

const servers: { close(): unknown; closeAllConnections?(): void }[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections?.()
    server.close()
  }
})

async function serve(listener: RequestListener): Promise<{ port: number; server: Server }> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, server }
}

const here = () => Promise.resolve([{ address: '127.0.0.1', family: 4 as const }])

function use(name: 'get' | 'send', input: object, options: HttpOptions = {}, signal = new AbortController().signal) {
  const tool = httpTools(options).find((each) => each.name === `http_${name}`)
  const valid = tool?.validate(input)
  if (tool === undefined || valid === undefined || 'error' in valid) throw new Error(JSON.stringify(valid))
  const context = { signal, clock: systemClock, key: 'act_1' as ActionId } as ToolContext
  return tool.perform(valid.input, context)
}

async function get(url: string, options?: HttpOptions): Promise<{ error?: string; status?: number; body?: string }> {
  const outcome = await use('get', { requests: [{ url }] }, options)
  return (outcome as { result: [object] }).result[0]
}

test.each([
  'http://127.0.0.1/',
  'http://127.1/',
  'http://2130706433/',
  'http://0x7f000001/',
  'http://0177.0.0.1/',
  'http://0/',
  'http://0.0.0.0/',
  'http://10.1.2.3/',
  'http://172.31.255.255/',
  'http://192.168.0.1/',
  'http://100.64.0.1/',
  'http://169.254.169.254/latest/meta-data/',
  'http://224.0.0.1/',
  'http://255.255.255.255/',
  'http://[::1]/',
  'http://[::]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:a00:1]/',
  'http://[::127.0.0.1]/',
  'http://[64:ff9b::7f00:1]/',
  'http://[2002:7f00:1::]/',
  'http://[fe80::1]/',
  'http://[fd00::1]/',
  'http://localhost/',
  'http://127.0.0.1./',
])('%s is refused', async (url) => {
  expect((await get(url)).error).toContain('is a private address')
})

test('public addresses are not', () => {
  expect(['1.1.1.1', '93.184.216.34', '172.32.0.1', '2606:4700::1111', '::ffff:1.1.1.1'].filter(isPrivate)).toEqual([])
})

test('a name that leads to a private address, even as one of several, is refused', async () => {
  const resolve = () =>
    Promise.resolve([
      { address: '93.184.216.34', family: 4 as const },
      { address: '10.0.0.1', family: 4 as const },
    ])
  expect((await get('http://rebind.test/', { resolve })).error).toBe(
    'rebind.test is a private address (10.0.0.1), which is not allowed',
  )
})

test('the address that was checked is the one that is connected to: the name is looked up once', async () => {
  const { port } = await serve((request, response) => response.end(request.headers.host))
  let lookups = 0
  const resolve = () => {
    lookups += 1
    return here()
  }
  const url = `http://nowhere.test:${port}/`
  const answer = await get(url, { resolve, allowPrivate: [`nowhere.test:${port}`] })
  expect(answer).toMatchObject({ status: 200, body: `nowhere.test:${port}` })
  expect(lookups).toBe(1)
})

test('several requests at once answer in order, each for itself', async () => {
  const gate = Promise.withResolvers<void>()
  let waiting = 0
  const { port } = await serve((request, response) => {
    waiting += 1
    if (waiting === 3) gate.resolve()
    void gate.promise.then(() => response.end(request.url))
  })
  const options = { allowPrivate: ['127.0.0.1'] }
  const requests = ['a', 'b', 'c'].map((name) => ({ url: `http://127.0.0.1:${port}/${name}` }))
  const outcome = await use('get', { requests: [...requests, { url: 'http://10.0.0.1/' }] }, options)
  expect(outcome).toMatchObject({
    result: [{ body: '/a' }, { body: '/b' }, { body: '/c' }, { error: expect.stringContaining('private') }],
  })
})

test('a redirect is checked again, and carries no secret to another host', async () => {
  const inner = await serve((request, response) => response.end(String(request.headers.authorization)))
  const { port } = await serve((request, response) => {
    const to = request.url === '/in' ? `http://127.0.0.1:${inner.port}/` : `http://b.test:${inner.port}/`
    response.writeHead(302, { location: to }).end()
  })
  const allowPrivate = [`a.test:${port}`, `b.test:${inner.port}`]
  const ask = (path: string) => {
    const requests = [{ url: `http://a.test:${port}${path}`, headers: { authorization: 'Bearer x' } }]
    return use('get', { requests }, { resolve: here, allowPrivate })
  }
  expect(await ask('/in')).toMatchObject({ result: [{ error: expect.stringContaining('is a private address') }] })
  expect(await ask('/out')).toMatchObject({ result: [{ status: 200, body: 'undefined' }] })
})

test('redirects without end are ended', async () => {
  let requests = 0
  const { port } = await serve((_, response) => {
    requests += 1
    response.writeHead(302, { location: '/again' }).end()
  })
  expect((await get(`http://127.0.0.1:${port}/`, { allowPrivate: ['127.0.0.1'] })).error).toBe('more than 5 redirects')
  expect(requests).toBe(6)
})

test('an answer without end is cut, one that never comes is given up', async () => {
  const { port } = await serve((request, response) => {
    if (request.url === '/never') return
    const write = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
      if (!response.destroyed) response.once('drain', write)
    }
    write()
  })
  const options = { allowPrivate: ['127.0.0.1'] }
  const long = await get(`http://127.0.0.1:${port}/`, options)
  expect(long).toMatchObject({ truncated: true })
  expect(long.body).toHaveLength(TOOL_LIMITS.responseBytes)
  const requests = [{ url: `http://127.0.0.1:${port}/never` }]
  expect(await use('get', { requests, timeout_seconds: 1 }, options)).toMatchObject({
    result: [{ error: 'timed out after 1s' }],
  })
})

test('a cancel ends the requests, and the other side sees it [R3]', async () => {
  const arrived = Promise.withResolvers<IncomingMessage>()
  const { port } = await serve((request) => arrived.resolve(request))
  const controller = new AbortController()
  const options = { allowPrivate: ['127.0.0.1'] }
  const requests = [{ url: `http://127.0.0.1:${port}/` }]
  const asked = use('get', { requests }, options, controller.signal)
  const request = await arrived.promise
  const closed = once(request.socket, 'close')
  controller.abort()
  expect(await asked).toEqual({ kind: 'failed', error: 'cancelled' })
  await closed
})

const post = (port: number, more: object = {}) => ({
  method: 'POST',
  url: `http://127.0.0.1:${port}/`,
  body: 'b',
  ...more,
})
const ALLOWED = { allowPrivate: ['127.0.0.1'] }

test('a write tells the status, takes the key along and follows no redirect', async () => {
  const { port } = await serve((request, response) => {
    response.writeHead(307, { location: '/other' }).end(String(request.headers['idempotency-key']))
  })
  expect(await use('send', post(port), ALLOWED)).toMatchObject({ kind: 'done', result: { status: 307, body: 'act_1' } })
})

test('a write that found nobody has failed, one whose connection broke is in doubt', async () => {
  const { port, server } = await serve(() => {})
  server.close()
  await once(server, 'close')
  expect(await use('send', post(port), ALLOWED)).toMatchObject({ kind: 'failed' })
  const breaking = createTcpServer((socket) => socket.once('data', () => socket.destroy())).listen(0, '127.0.0.1')
  servers.push(breaking)
  await once(breaking, 'listening')
  const outcome = await use('send', post((breaking.address() as AddressInfo).port), ALLOWED)
  expect(outcome).toMatchObject({ kind: 'in-doubt', error: expect.stringContaining('after it may have been sent') })
})

test('a write that is cancelled, late or lost at a gateway is in doubt [R3]', async () => {
  const arrived = Promise.withResolvers<void>()
  const { port } = await serve((request, response) => {
    if (request.url === '/gateway') response.writeHead(504).end('upstream')
    else arrived.resolve()
  })
  const controller = new AbortController()
  const sent = use('send', post(port), ALLOWED, controller.signal)
  await arrived.promise
  controller.abort()
  expect(await sent).toEqual({ kind: 'in-doubt', error: 'cancelled, after it may have been sent' })
  expect(await use('send', post(port, { timeout_seconds: 1 }), ALLOWED)).toMatchObject({ kind: 'in-doubt' })
  const url = `http://127.0.0.1:${port}/gateway`
  expect(await use('send', post(port, { url }), ALLOWED)).toMatchObject({
    kind: 'in-doubt',
    error: 'status 504: upstream',
  })
})

test('the identity of a write is method, URL and body, not its headers', () => {
  const tool = httpTools()[1]
  const identity = (more: object) => tool?.identity({ ...post(1), ...more })
  expect(identity({ headers: { a: 'b' } })).toEqual(identity({ url: 'http://127.0.0.1:1' }))
  expect(identity({ body: 'c' })).not.toEqual(identity({}))
  expect(identity({ method: 'PUT' })).not.toEqual(identity({}))
})
