import { existsSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { once } from 'node:events'

import { expect, onTestFinished, test } from 'vitest'

import { Installation, until } from '../support/holdfast.ts'
import { ask, demoDaemon, get, numbers, openStream, post, quickDemo, quietPort } from './support.ts'

const daemonFile = (place: Installation) => join(place.home, 'daemon.json')

test('a message that was answered is there after kill -9 in the next instant, and gets its answer [durable/acknowledged]', async () => {
  const place = new Installation()
  const first = await demoDaemon(place, quickDemo(500))
  const sent = await post(`${first.url}/api/v1/messages`, { agent: 'clerk', text: 'survive' }, first.token)
  first.process.kill('SIGKILL')
  expect(sent.status).toBe(201)
  const { threadId, runId } = sent.body as { threadId: string; runId: string }
  await first.process.ended
  expect(await place.json(['threads', 'show', threadId])).toMatchObject({ messages: [{ body: { text: 'survive' } }] })
  await demoDaemon(place, quickDemo())
  await place.reaches(runId, 'succeeded')
  const ledger = readFileSync(join(place.home, 'demo-ledger.jsonl'), 'utf8').trim().split('\n')
  expect(ledger.map((line) => (JSON.parse(line) as { entry: string }).entry)).toEqual(['survive'])
})

test('a reader goes on with Last-Event-ID at the next daemon, whether the last one was killed or drained', async () => {
  const place = new Installation()
  const read: number[] = []
  const port = await quietPort()
  for (const end of ['SIGKILL', 'SIGTERM', 'SIGHUP', undefined] as const) {
    const daemon = await demoDaemon(place, quickDemo(300), port)
    const reader = await openStream(daemon.url, 'header', daemon.token, read.at(-1) ?? 0)
    await post(`${daemon.url}/api/v1/messages`, { agent: 'clerk', text: 'hello' }, daemon.token)
    await until('the run has begun', () =>
      Promise.resolve(reader.events.some(({ type }) => type === 'run.started') ? true : undefined),
    )
    if (end === undefined) {
      await until('everything has ended', async () => {
        const { body } = await get(`${daemon.url}/api/v1/runs?state=queued,running,parked`, daemon.token)
        return (body as { items: unknown[] }).items.length === 0 ? true : undefined
      })
      const { body } = await get(`${daemon.url}/api/v1/threads`, daemon.token)
      const { seq } = body as { seq: number }
      await reader.has(seq - (read.at(-1) ?? 0))
    } else {
      daemon.process.kill(end)
      await until('it notices', () => Promise.resolve(reader.ended))
      expect(reader.ended).toBe(end === 'SIGKILL' ? 'cut' : 'clean')
      await daemon.process.ended
    }
    read.push(...reader.ids)
  }
  expect(read).toEqual(numbers(1, read.length))
  expect(read.length).toBeGreaterThan(20)
})

test('a command that is scheduled over HTTP without variables finds its programs', async () => {
  const place = new Installation()
  const { url, token } = await demoDaemon(place, quickDemo())
  const command = ['sh', '-c', 'command -v ls > found']
  const added = await post(`${url}/api/v1/schedules`, { name: 'look', in: '100ms', command, cwd: place.home }, token)
  expect(added.status).toBe(201)
  const runId = await until('it has fired', async () => {
    const [fired] = await place.json<{ runId?: string }[]>(['schedule', 'occurrences', 'look'])
    return fired?.runId
  })
  await place.reaches(runId, 'succeeded')
  expect(readFileSync(join(place.home, 'found'), 'utf8')).toContain('/ls')
})

test('the token is made once and for its owner only; where the daemon is stands beside it until it ends', async () => {
  const place = new Installation()
  const first = await demoDaemon(place)
  expect(statSync(join(place.home, 'token')).mode & 0o777).toBe(0o600)
  expect(first.token).toMatch(/^[0-9a-f]{64}$/)
  const where = JSON.parse(readFileSync(daemonFile(place), 'utf8')) as Record<string, unknown>
  expect(where).toMatchObject({ url: first.url, pid: first.process.pid })
  const { body } = await ask(`${first.url}/api/v1/health`)
  expect(body).toEqual({ status: 'ok', instance: where['instance'] })
  first.process.kill('SIGKILL')
  const killed = await first.process.ended
  expect(`${killed.stdout}${killed.stderr}`).not.toContain(first.token)
  expect(existsSync(daemonFile(place))).toBe(true)
  const second = await demoDaemon(place)
  expect(second.token).toBe(first.token)
  second.process.kill('SIGTERM')
  expect((await second.process.ended).code).toBe(0)
  expect(existsSync(daemonFile(place))).toBe(false)
})

test('HOLDFAST_TOKEN is used instead of the one in the home folder', async () => {
  const place = new Installation()
  const daemon = place.start(['up', '--port', '0'], { HOLDFAST_TOKEN: 'mine-for-now' })
  await daemon.said('holdfast: window:')
  const { url } = JSON.parse(readFileSync(daemonFile(place), 'utf8')) as { url: string }
  expect((await get(`${url}/api/v1/agents`, 'mine-for-now')).status).toBe(200)
  expect(existsSync(join(place.home, 'token'))).toBe(false)
})

test('a port that was asked for and is taken is said, and nothing is left behind', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await once(other, 'listening')
  const { port } = other.address() as { port: number }
  const place = new Installation()
  const { code, stderr } = await place.run(['up', '--port', String(port)])
  expect([code, stderr]).toEqual([1, expect.stringContaining(`daemon/port: cannot listen on port ${port}`)])
  expect(stderr).toContain('--port 0')
  expect(await place.json(['status'])).toMatchObject({ daemons: [] })
  expect((await place.run(['up', '--port', 'x'])).code).toBe(2)
})

test('the usual port being taken keeps no daemon from starting', async () => {
  const other = createServer()
  onTestFinished(() => void other.close())
  // A daemon of another test may have it for a moment, and give it back just when ours wants it.
  await until('the usual port is ours', async () => {
    const listening = once(other, 'listening').then(() => true)
    other.listen(4780, '127.0.0.1')
    return listening.catch(() => undefined)
  })
  const place = new Installation()
  const daemon = place.start(['up'])
  await daemon.said('port 4780 is taken by another program')
  await daemon.said('holdfast: window:')
  const { url } = JSON.parse(readFileSync(daemonFile(place), 'utf8')) as { url: string }
  expect((await ask(`${url}/api/v1/health`)).status).toBe(200)
})
