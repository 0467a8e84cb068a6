import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { temporaryFolder } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { openPlace } from './place.ts'

const FAKE = fileURLToPath(new URL('./fake-client.mjs', import.meta.url))

interface Told {
  readonly args: readonly string[]
  readonly prompt: string
}

/** A daemon with an agent that is a client, and what that client was told. */
async function withClient(more: object = {}) {
  const sessions = join(temporaryFolder(), 'sessions')
  mkdirSync(sessions)
  const coder = { client: 'claude', program: FAKE, env: ['FAKE_CLIENT'], ...more }
  const place = await openPlace({ agents: { coder } }, { FAKE_CLIENT: sessions })
  const log = () =>
    readFileSync(join(sessions, 'log'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Told)
  const flags = () => log().map(({ args }) => args.filter((arg) => arg === '--session-id' || arg === '--resume').join())
  /** The client, once it is in the middle of a turn. */
  const hanging = async () => {
    const mark = join(sessions, 'hanging')
    await until('it is in its turn', async () => (existsSync(mark) ? true : undefined))
    return Number(readFileSync(mark, 'utf8'))
  }
  return { ...place, sessions, log, flags, hanging }
}

test('two messages to one thread are two turns of one session, each with its own tokens and cost; another thread is another session', async () => {
  const settings = { model: 'opus', permissions: 'edits', args: ['--max-turns', '5'] }
  const { ask, log, flags, store, installation } = await withClient(settings)
  const first = await ask('--help me')
  const second = await ask('and now?', first.thread)
  expect([first, second].map(({ state, result }) => [state, result?.text])).toEqual([
    ['succeeded', 'I know --help me'],
    ['succeeded', 'I know --help me | and now?'],
  ])
  expect(second.result?.session).toEqual({ client: 'claude', id: first.result?.session?.id })
  expect(log()[0]?.args.join(' ')).toContain('--model opus --permission-mode acceptEdits --max-turns 5 --session-id')
  // Its total is 0.25 after the first turn, 0.50 after the second.
  const usage = { inputTokens: 16, outputTokens: 3, costUsd: 0.25 }
  expect([first.usage, second.usage]).toEqual([usage, usage])
  const other = await ask('hello')
  expect(other.result?.text).toBe('I know hello')
  expect(flags()).toEqual(['--session-id', '--resume', '--session-id'])
  expect(log().map(({ prompt }) => prompt)).toEqual(['--help me', 'and now?', 'hello'])
  const { stdout } = await installation.run(['runs', 'show', second.id])
  expect(stdout).toContain('< I know --help me | and now?')
  expect(stdout).toMatch(/^tokens: +16 in, 3 out, \$0\.25$/m)
  await assertInvariants(store)
})

test('what it says that it did is in the steps and in the ledger of its run', async () => {
  const { ask, installation, store } = await withClient()
  const run = await ask('use a TOOL')
  expect(run).toMatchObject({
    steps: [
      { kind: 'user', text: 'use a TOOL' },
      { kind: 'assistant', text: '', toolCalls: [{ tool: 'Bash' }] },
      { kind: 'assistant', text: 'done', usage: { inputTokens: 16, outputTokens: 3, costUsd: 0.25 } },
    ],
    actions: [
      { tool: 'Bash', state: 'done', input: { command: 'echo hi' }, result: 'hi', settledBy: 'its client says so' },
    ],
  })
  expect((await installation.run(['runs', 'statement', run.id])).stdout).toContain('Bash')
  const long = await ask('LONG', run.thread)
  expect(long.result?.text).toBe('long')
  expect('actions' in long ? long.actions : []).toHaveLength(200)
  expect('actions' in long ? long.actions?.at(-1) : {}).toMatchObject({ input: { command: 'echo 299' }, state: 'done' })
  await assertInvariants(store)
})

test('a session that is gone is replaced by a new one, once, and the reply says so', async () => {
  const { ask, log, flags, sessions, store } = await withClient()
  const first = await ask('one')
  const gone = first.result?.session?.id ?? ''
  rmSync(join(sessions, gone))
  const second = await ask('two', first.thread)
  expect(second).toMatchObject({ state: 'succeeded', attempt: 2, result: { session: { insteadOf: gone } } })
  expect(second.result?.text).toContain(`The session ${gone} is gone`)
  const shown = log().at(-1)?.prompt ?? ''
  expect(shown).toMatch(/^The session in which this conversation was held is gone/)
  expect(shown).toContain('You were told:\n> one\n\nYou said:\n> I know one\n\nWhat you are told now:\n\ntwo')
  const third = await ask('three', first.thread)
  expect(third.result?.text).toMatch(/two \| three$/)
  expect(flags()).toEqual(['--session-id', '--resume', '--session-id', '--resume'])
  expect([second.usage.costUsd, third.usage.costUsd]).toEqual([0.25, 0.25])
  await assertInvariants(store)
})

test('killed in the middle, with or without its daemon, the turn fails, what it had begun is in doubt, and the next message goes on in its session', async () => {
  const { ask, send, ended, hanging, sessions, store, flags, daemon, up } = await withClient()
  const sent = await send('HANG there')
  process.kill(await hanging(), 'SIGKILL')
  expect(await ended(sent)).toMatchObject({
    state: 'failed',
    code: 'killed',
    actions: [{ tool: 'Bash', state: 'in_doubt', input: { command: 'make' } }],
  })
  rmSync(join(sessions, 'hanging'))
  const again = await send('HANG again', sent.threadId)
  const client = await hanging()
  daemon.kill('SIGKILL')
  await daemon.ended
  process.kill(client, 'SIGKILL')
  await up()
  expect(await ended(again)).toMatchObject({ state: 'failed', code: 'killed' })
  const next = await ask('go on', sent.threadId)
  expect(next.result?.text).toBe('I know HANG there | HANG again | go on')
  expect(flags()).toEqual(['--session-id', '--resume', '--resume'])
  await assertInvariants(store)
})

test('in a workspace its files land with each turn, that of a session begun anew included', async () => {
  const root = temporaryFolder()
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', root, '-c', 'user.name=a', '-c', 'user.email=a@b', ...args])
  git('init', '--quiet', '--initial-branch', 'main')
  git('commit', '--quiet', '--allow-empty', '--message', 'begin')
  const { ask, sessions, store } = await withClient({ workspace: { root, mode: 'transaction' } })
  const lands = (file: string) => until(`${file} lands`, async () => (existsSync(join(root, file)) ? true : undefined))
  const first = await ask('TOUCH one')
  await lands('one')
  rmSync(join(sessions, first.result?.session?.id ?? ''))
  expect(await ask('TOUCH two', first.thread)).toMatchObject({ state: 'succeeded', attempt: 2 })
  await lands('two')
  await assertInvariants(store)
})

test('a client that is not installed fails the run, says what to do, and leaves no session behind', async () => {
  const { ask, sessions, flags, installation } = await withClient({ program: join(temporaryFolder(), 'client') })
  const failed = await ask('one')
  expect(failed).toMatchObject({ state: 'failed', code: 'spawn' })
  expect(failed.error).toMatch(
    /^not found: .*client \(install it .*, or write where it is in "program" of the agent\)$/,
  )
  const { agents } = JSON.parse(readFileSync(installation.configuration, 'utf8')) as {
    agents: { coder: { program: string } }
  }
  symlinkSync(FAKE, agents.coder.program)
  expect((await ask('two', failed.thread)).result?.text).toBe('I know two')
  expect(existsSync(join(sessions, 'log')) && flags()).toEqual(['--session-id'])
})

test('what is not JSON, and what was cut off, is kept as text; refused credentials are counted by the breaker', async () => {
  const { ask, store } = await withClient()
  const plain = await ask('PLAIN')
  expect(plain).toMatchObject({ state: 'succeeded', result: { text: 'no JSON at all' } })
  const cut = await ask('CUT', plain.thread)
  expect(cut).toMatchObject({ state: 'failed', code: 'exit', error: 'exited with status 1' })
  expect(cut.result?.text).toBe('{"type":"assistant","mess')
  const refused = [await ask('REFUSED'), await ask('REFUSED'), await ask('REFUSED')]
  expect(refused.map(({ state, code }) => [state, code])).toEqual(refused.map(() => ['failed', 'auth']))
  expect(refused[0]?.error).toContain('Failed to authenticate (sign the client in on this machine')
  expect(await ask('hello')).toMatchObject({ state: 'failed', code: 'circuit_open' })
  await assertInvariants(store)
})
