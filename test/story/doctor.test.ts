import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'

import { describe, expect, onTestFinished, test } from 'vitest'

import { systemClock } from '../../src/base/clock.ts'
import { CLIENTS } from '../../src/hooks/install/client.ts'
import { openConnection } from '../../src/store/sqlite/open.ts'
import { USUAL_PORT } from '../../src/server/usual-port.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import { Installation } from '../support/holdfast.ts'
import { setClock } from '../support/schemas.ts'
import { until } from '../support/until.ts'
import { ROOT, readSource } from '../tidy/tree.ts'

interface Finding {
  readonly check: string
  readonly status: string
  readonly detail: string
  readonly remedy?: string
}

interface Report {
  readonly healthy: boolean
  readonly findings: readonly Finding[]
}

async function report(place: Installation, env: Record<string, string> = {}): Promise<Report> {
  const { stdout } = await place.run(['--json', 'doctor'], env)
  return JSON.parse(stdout) as Report
}

const found = ({ findings }: Report, check: string) => findings.find((finding) => finding.check === check)

test('a home that is no folder, or cannot be one, is named with what to do', async () => {
  const place = new Installation()
  const file = join(dirname(place.home), 'file')
  writeFileSync(file, '')
  for (const home of [file, join(file, 'home'), '/proc/holdfast']) {
    const ill = await report(place, { HOLDFAST_HOME: home })
    expect(ill.healthy).toBe(false)
    expect(found(ill, 'home')).toMatchObject({
      status: 'fail',
      remedy: expect.stringContaining('HOLDFAST_HOME') as string,
    })
    expect(ill.findings.map(({ check }) => check)).toEqual(expect.arrayContaining(WITHOUT_THE_STORE))
    if (home === file) expect(found(ill, 'home')?.detail).toContain(`${file} is not a folder`)
  }
})

const WITHOUT_THE_STORE = ['node', 'disk', 'clock', 'containment', 'git', 'checks', 'window']

test('a store that cannot be opened, or a configuration that is wrong, does not keep the rest from being looked at', async () => {
  const place = new Installation()
  writeFileSync(place.configuration, JSON.stringify({ agents: { clerk: { model: 5 } } }))
  const wrong = await report(place)
  expect(found(wrong, 'configuration')).toMatchObject({ status: 'fail' })
  expect(found(wrong, 'store')).toMatchObject({ status: 'ok' })
  expect(found(wrong, 'clock')?.detail).toContain('agrees with the sqlite store')

  writeFileSync(place.configuration, '{}')
  writeFileSync(join(place.home, 'holdfast.db'), 'not a database '.repeat(1_000))
  const damaged = await report(place)
  expect(found(damaged, 'store')).toMatchObject({ status: 'fail' })
  expect(damaged.findings.map(({ check }) => check)).toEqual(expect.arrayContaining(WITHOUT_THE_STORE))
})

test('an address that is none is a matter of the store, not of the configuration', async () => {
  const wrong = await report(new Installation({ store: 'foo' }))
  expect(found(wrong, 'store')).toMatchObject({
    status: 'fail',
    detail: expect.stringContaining('usage/store-url') as string,
  })
  expect(found(wrong, 'configuration')).toBeUndefined()
  expect(wrong.findings.map(({ check }) => check)).toEqual(expect.arrayContaining(WITHOUT_THE_STORE))
})

test('where no temporary file can be made, that is a finding', async () => {
  const ill = await report(new Installation(), { TMPDIR: '/nonexistent' })
  expect(ill.findings.map(({ check }) => check)).toEqual(expect.arrayContaining(WITHOUT_THE_STORE))
  // Elsewhere there is nothing to try, so nothing is missed.
  if (process.platform !== 'linux') return
  expect(ill.healthy).toBe(false)
  expect(found(ill, 'checks')).toMatchObject({
    status: 'fail',
    detail: expect.stringContaining('/nonexistent') as string,
    remedy: expect.stringContaining('TMPDIR') as string,
  })
})

test('a Node that is too old says what to install, to people and to scripts', () => {
  const folder = temporaryFolder()
  // An installed package, which has no Node of its own.
  cpSync(join(ROOT, 'bin'), join(folder, 'bin'), { recursive: true })
  mkdirSync(join(folder, 'dist/cli'), { recursive: true })
  writeFileSync(join(folder, 'dist/cli/main.js'), '')
  const pretend = join(folder, 'old.cjs')
  writeFileSync(
    pretend,
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.11.0', sqlite: undefined } })`,
  )
  const args = ['--require', pretend, join(folder, 'bin/holdfast'), 'doctor']
  const told = spawnSync(process.execPath, args, { encoding: 'utf8' })
  expect(told).toMatchObject({ status: 1, stdout: '' })
  expect(told.stderr).toMatch(/Node 24\.21\.0 or newer.*this is Node 20\.11\.0.*install one from https:\/\/nodejs\.org/)
  const scripted = spawnSync(process.execPath, [...args, '--json'], { encoding: 'utf8' })
  expect(JSON.parse(scripted.stdout)).toMatchObject({ healthy: false, findings: [{ check: 'node', status: 'fail' }] })
})

test('a usual port that another program has is a warning that says who may have it and what happens', async () => {
  const server = createServer()
  onTestFinished(() => void server.close())
  // Another test's daemon may have the port, and give it back at any moment: until then it is taken without us.
  const hold = async () => {
    if (server.listening) return
    const tried = once(server, 'listening').catch(() => {})
    server.listen(USUAL_PORT, '127.0.0.1')
    await tried
  }
  const place = new Installation()
  const finding = await until('doctor warns of the port', async () => {
    await hold()
    const window = found(await report(place), 'window')
    return window?.status === 'warn' ? window : undefined
  })
  expect(finding).toMatchObject({
    detail: expect.stringContaining(`port ${USUAL_PORT} is in use`) as string,
    remedy: expect.stringContaining('--port NUMBER') as string,
  })
})

test('a daemon that hangs is told from one that answers', async () => {
  const place = new Installation()
  const daemon = await place.up()
  expect(found(await report(place), 'window')).toMatchObject({ status: 'ok' })
  daemon.kill('SIGSTOP')
  const hanging = await report(place)
  daemon.kill('SIGCONT')
  expect(hanging.healthy).toBe(false)
  expect(found(hanging, 'window')!.detail).toContain(`process ${daemon.pid}, does not answer`)
  expect(found(hanging, 'window')!.remedy).toContain(`kill ${daemon.pid}`)
})

describe('clocks', () => {
  test('a server whose clock is ahead of ours is seen', async () => {
    const postgres = engines.find(({ name }) => name === 'postgres')!
    const { url } = await postgres.database()
    const place = new Installation({ store: url })
    expect(found(await report(place), 'clock')).toMatchObject({ status: 'ok' })
    await setClock(new URL(url).searchParams.get('schema')!, Date.now() + 3_600_000)
    expect(found(await report(place), 'clock')).toMatchObject({
      status: 'warn',
      detail: expect.stringMatching(/database is 3\d\d\d\.\d s ahead of/) as string,
      remedy: expect.stringContaining('NTP') as string,
    })
  })

  test('so is a clock that was set back since something happened', async () => {
    const place = new Installation()
    await place.run(['status'])
    const connection = openConnection(join(place.home, 'holdfast.db'), systemClock)
    connection.script(`insert into events (at, type, data) values (${Date.now() + 7_200_000}, 'run.queued', '{}')`)
    connection.close()
    expect(found(await report(place), 'clock')).toMatchObject({
      status: 'warn',
      detail: expect.stringMatching(/newest event is 7\d\d\d\.\d s in the future/) as string,
    })
  })
})

describe('clients that have our hooks', () => {
  const withClaude = (version: string) => {
    const place = new Installation()
    const folder = dirname(place.home)
    const bin = join(folder, 'bin')
    mkdirSync(bin)
    const is = (said: string) =>
      writeFileSync(join(bin, 'claude'), `#!/bin/sh\necho '${said} (Claude Code)'\n`, { mode: 0o755 })
    is(version)
    return { place, folder, is, env: { HOME: folder, PATH: `${bin}:${process.env.PATH ?? ''}` } }
  }

  test('one that is older than what the hooks were made for is told, and one without hooks is not looked at', async () => {
    const { place, env, is } = withClaude('2.0.99')
    expect(found(await report(place, env), 'Claude Code')).toBeUndefined()
    await place.run(['hooks', 'install', 'claude', '--yes'], env)
    expect(found(await report(place, env), 'Claude Code')).toMatchObject({
      status: 'warn',
      detail: expect.stringContaining(`older than ${CLIENTS.claude.madeFor}`) as string,
    })
    is(CLIENTS.claude.madeFor)
    expect(found(await report(place, env), 'Claude Code')).toMatchObject({ status: 'ok' })
  })

  test('one that an agent of the configuration is, is looked for without hooks too', async () => {
    const { place, env, folder, is } = withClaude('2.0.99')
    const agents = {
      here: { client: 'claude', permissions: 'read' },
      gone: { client: 'codex', program: './no-codex' },
      plain: { command: ['no-such-program'] },
    }
    writeFileSync(place.configuration, JSON.stringify({ agents }))
    const told = await report(place, env)
    expect(told.healthy).toBe(true)
    expect(found(told, 'agent here')).toMatchObject({
      status: 'warn',
      detail: expect.stringMatching(/^Claude Code 2\.0\.99, .*older than/) as string,
    })
    expect(found(told, 'agent gone')).toMatchObject({
      status: 'warn',
      detail: 'its program is not found: ./no-codex',
      remedy: expect.stringContaining('"program" of the agent') as string,
    })
    expect(found(told, 'agent plain')?.remedy).toContain('"command" of the agent')
    is(CLIENTS.claude.madeFor)
    expect(found(await report(place, env), 'agent here')).toMatchObject({
      status: 'ok',
      detail: `Claude Code ${CLIENTS.claude.madeFor}, ${join(folder, 'bin/claude')}`,
    })
  })

  test('hooks that somebody changed are told with the command that puts them right', async () => {
    const { place, folder, env } = withClaude('9.9.9')
    await place.run(['hooks', 'install', 'claude', '--yes'], env)
    const settings = join(folder, '.claude/settings.json')
    writeFileSync(settings, readFileSync(settings, 'utf8').replace('"SessionEnd"', '"SessionStarted"'))
    expect(found(await report(place, env), 'hooks of Claude Code')).toMatchObject({
      status: 'warn',
      remedy: expect.stringContaining('holdfast hooks install claude') as string,
    })
  })

  test('the versions that the doctor knows are those that the tests drive', () => {
    const { text } = readSource('scripts/real-clients.sh')
    for (const [client, { madeFor }] of Object.entries(CLIENTS))
      expect(text).toContain(`${client}=\${${client.toUpperCase()}_VERSION:-${madeFor}}`)
  })
})

/** A world without cgroups, in a mount namespace of its own; only some machines let us make one. */
const HIDE_CGROUPS = ['--mount', 'sh', '-c', 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', 'sh']
const canHide = existsSync('/usr/bin/unshare') && spawnSync('unshare', [...HIDE_CGROUPS, 'true']).status === 0

test.skipIf(!canHide)('without containment the doctor says what could happen, and how to get some', () => {
  const folder = temporaryFolder()
  for (const name of ['unshare', 'nsenter']) {
    writeFileSync(join(folder, name), '#!/bin/sh\necho "operation not permitted" >&2\nexit 1\n')
    chmodSync(join(folder, name), 0o755)
  }
  const env = { PATH: `${folder}:${process.env.PATH ?? ''}`, HOLDFAST_HOME: join(folder, 'home'), HOME: folder }
  const program = [join(ROOT, 'bin/holdfast'), 'doctor', '--json']
  const { stdout } = spawnSync('/usr/bin/unshare', [...HIDE_CGROUPS, ...program], { env, encoding: 'utf8' })
  expect(found(JSON.parse(stdout) as Report, 'containment')).toMatchObject({
    status: 'warn',
    detail: expect.stringMatching(/^mark: /) as string,
    remedy: expect.stringContaining('systemd-run') as string,
  })
})
