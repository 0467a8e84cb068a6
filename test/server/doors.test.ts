import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { request } from 'node:http'
import { request as secureRequest } from 'node:https'
import type { IncomingMessage, RequestOptions } from 'node:http'
import { once } from 'node:events'
import { dirname, join } from 'node:path'

import { expect, test } from 'vitest'

import { API } from '../../src/api/endpoint.ts'
import { temporaryFolder } from '../support/engines.ts'
import { Installation } from '../support/holdfast.ts'
import { ask, bearer, demoDaemon, get } from './support.ts'

async function answer(begin: () => ReturnType<typeof request>): Promise<number> {
  const sent = begin().end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.resume()
  return response.statusCode!
}

test('the daemon is at both addresses of this machine, under one port, and at no other', async () => {
  const { url, token } = await demoDaemon(new Installation())
  const { port } = new URL(url)
  expect((await get(`http://127.0.0.1:${port}${API}/agents`, token)).status).toBe(200)
  const hasIpv6 = readFileSync('/proc/net/if_inet6', 'utf8').includes(' lo')
  if (hasIpv6) expect((await get(`http://[::1]:${port}${API}/agents`, token)).status).toBe(200)
  const hexPort = Number(port).toString(16).toUpperCase().padStart(4, '0')
  const tables = ['tcp', 'tcp6'].map((name) => readFileSync(`/proc/net/${name}`, 'utf8')).join('\n')
  const listening = tables.split('\n').filter((line) => line.includes(`:${hexPort} `) && / 0A /.test(line))
  const addresses = listening.map((line) => line.trim().split(/\s+/)[1]!.split(':')[0]!)
  const LOOPBACK = ['0100007F', '00000000000000000000000001000000']
  expect(addresses.filter((address) => !LOOPBACK.includes(address))).toEqual([])
})

test('a unix socket is for its owner, and what is asked there needs the token too', async () => {
  const place = new Installation()
  const path = join(dirname(place.home), 'door')
  const daemon = place.start(['up', '--port', '0', '--socket', path])
  await daemon.said('holdfast: window:')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const token = readFileSync(join(place.home, 'token'), 'utf8').trim()
  const at = (options: RequestOptions) => () => request({ socketPath: path, path: `${API}/agents`, ...options })
  expect(await answer(at({ headers: { host: 'localhost', ...bearer(token) } }))).toBe(200)
  expect(await answer(at({ headers: { host: 'localhost' } }))).toBe(401)
  expect(await answer(at({ headers: { host: 'evil.example', ...bearer(token) } }))).toBe(403)
})

test('a wider door needs TLS or somebody who says that they know, and a token at any rate', async () => {
  const place = new Installation()
  const refused = await place.run(['up', '--port', '0', '--bind', '0.0.0.0'])
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--insecure-bind')])
  const daemon = place.start(['up', '--port', '0', '--bind', '0.0.0.0', '--insecure-bind', '--name', 'box.example'])
  await daemon.said('holdfast: window:')
  const { url } = JSON.parse(readFileSync(join(place.home, 'daemon.json'), 'utf8')) as { url: string }
  const { port } = new URL(url)
  const at = (host: string, headers = {}) =>
    ask(`http://127.0.0.1:${port}${API}/agents`, { headers: { host, ...headers } })
  expect((await at(`box.example:${port}`)).status).toBe(401)
  expect((await at(`other.example:${port}`)).status).toBe(403)
  const token = readFileSync(join(place.home, 'token'), 'utf8').trim()
  expect((await at(`box.example:${port}`, bearer(token))).status).toBe(200)
})

const hasOpenssl = spawnSync('openssl', ['version']).status === 0
test.skipIf(!hasOpenssl)('with a certificate it speaks TLS, and its cookies are for that alone', async () => {
  const place = new Installation()
  const folder = temporaryFolder()
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
  execFileSync('openssl', [...made, '-subj', '/CN=box.example', '-keyout', key, '-out', cert], { stdio: 'ignore' })
  const daemon = place.start(['up', '--port', '0', '--tls-cert', cert, '--tls-key', key])
  await daemon.said('holdfast: window:')
  const { url } = JSON.parse(readFileSync(join(place.home, 'daemon.json'), 'utf8')) as { url: string }
  expect(url).toMatch(/^https:/)
  const token = readFileSync(join(place.home, 'token'), 'utf8').trim()
  const options = { headers: bearer(token), rejectUnauthorized: false }
  expect(await answer(() => secureRequest(`${url}${API}/agents`, options))).toBe(200)
  const sent = secureRequest(`${url}${API}/session`, { ...options, method: 'POST' }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  expect(response.headers['set-cookie']?.[0]).toMatch(/; Secure$/)
  response.resume()
})

const isRoot = process.getuid?.() === 0
if (!isRoot) console.log('Not root: nobody else can be acted as, so the test of a second user is skipped.')

test.skipIf(!isRoot)(
  'another user of this machine reads nothing in the home folder and is told nothing without a token',
  async () => {
    const place = new Installation()
    // As somebody may have made it beforehand, open for everybody to look into.
    mkdirSync(place.home, { recursive: true })
    chmodSync(dirname(place.home), 0o755)
    chmodSync(place.home, 0o755)
    const path = join(place.home, 'door')
    const daemon = place.start(['up', '--port', '0', '--socket', path])
    await daemon.said('holdfast: window:')
    const { url } = JSON.parse(readFileSync(join(place.home, 'daemon.json'), 'utf8')) as { url: string }
    const asNobody = (script: string) =>
      spawnSync('/bin/sh', ['-c', script], { uid: 65_534, gid: 65_534, cwd: '/', encoding: 'utf8' })
    for (const name of ['token', 'record-token', 'holdfast.db', 'holdfast.db-wal', 'daemon.json']) {
      const { status, stdout, stderr } = asNobody(`cat '${join(place.home, name)}'`)
      expect([name, status, stdout, stderr]).toEqual([name, 1, '', expect.stringContaining('Permission denied')])
    }
    const program = `const s = require('node:net').connect(process.argv[1]); s.on('connect', () => process.exit(0)); s.on('error', (e) => (console.log(e.code), process.exit(1)))`
    const door = spawnSync(process.execPath, ['-e', program, path], {
      uid: 65_534,
      gid: 65_534,
      cwd: '/',
      encoding: 'utf8',
    })
    expect([door.status, door.stdout.trim()]).toEqual([1, 'EACCES'])
    const question = `fetch(process.argv[1]).then((r) => console.log(r.status))`
    const asked = spawnSync(process.execPath, ['-e', question, `${url}${API}/runs`], {
      uid: 65_534,
      gid: 65_534,
      cwd: '/',
      encoding: 'utf8',
    })
    expect(asked.stdout.trim()).toBe('401')
  },
)
