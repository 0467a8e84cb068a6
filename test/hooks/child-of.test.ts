import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import type { ThreadId } from '../../src/base/ids.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { findThread } from '../../src/threads/thread.ts'
import { temporaryFolder } from '../support/engines.ts'
import { Installation, PROGRAM, until } from '../support/holdfast.ts'
import type { Ended } from '../support/holdfast.ts'
import { HOOK, NODE, callHook, run, tellWhatIsKept } from './support.ts'
import type { HookCall } from './support.ts'

const start = (session: string) => ({
  session_id: session,
  hook_event_name: 'SessionStart',
  source: 'startup',
  cwd: '/',
})

/** Stands for a client: a script of its name, which calls its hook and then starts what its model wants, with its own variables. */
const CLIENT = `const { spawnSync } = require('node:child_process');
  const [client, session, ...inner] = process.argv.slice(2);
  const says = ${JSON.stringify(start('SESSION'))};
  const input = JSON.stringify(says).replace('SESSION', session);
  const hook = spawnSync('sh', ['-c', ${JSON.stringify(`${NODE} ${HOOK} `)} + client + '; exit $?'], { input, stdio: ['pipe', 'inherit', 'inherit'] });
  const marks = client === 'codex' ? { CODEX_THREAD_ID: session } : { GEMINI_CLI: '1' };
  const [program, ...args] = inner;
  const env = { ...process.env, ...marks };
  const end = program === undefined ? hook : spawnSync('sh', ['-c', '"$0" "$@"; exit $?', program, ...args], { env, stdio: 'inherit' });
  process.exit(end.status ?? 1)`

async function place() {
  const installation = new Installation()
  const { home } = installation
  await installation.up()
  const store = await openSqliteStore({ path: join(home, 'holdfast.db') })
  onTestFinished(() => store.close())
  const folder = temporaryFolder()
  for (const name of ['codex', 'gemini']) writeFileSync(join(folder, name), CLIENT)
  const client = (name: 'codex' | 'gemini', session: string, ...inner: readonly string[]) => {
    return [NODE, join(folder, name), name, session, ...inner] as const
  }
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, HOLDFAST_HOME: home }
  const go = async ([program, ...args]: readonly [string, ...string[]], more: Record<string, string> = {}) => {
    await heard(home, await run(program, args, { env: { ...env, ...more } }))
  }
  const call = async (said: Omit<HookCall, 'home'>) => heard(home, await callHook({ home, ...said }))
  // Null is an answer.
  const parent = async (id: string) => {
    const known = async () => store.read(findThread, id as ThreadId)
    return (await until(`${id} is known`, known)).parentId
  }
  return { client, go, call, parent }
}

/** Where the machine is too busy a hook is kept, and told by the next; who began inside must be told after it. */
async function heard(home: string, { code, stderr }: Ended): Promise<void> {
  if (stderr === '') return expect(code).toBe(0)
  expect([code, stderr]).toEqual([expect.toBeOneOf([0, 1]), expect.stringContaining('is kept in')])
  await tellWhatIsKept(home)
}

test('a client that Codex or Gemini CLI has started is the child of that session, not of whoever is around it [M12]', async () => {
  const { client, go, call, parent } = await place()
  // A conductor, in whose terminal everything runs: what it starts inherits its thread.
  await call({ says: start('s1') })
  const inherited = { HOLDFAST_THREAD: 'claude-s1' }
  await go(
    client('codex', 'c1', ...client('gemini', 'g1', ...client('codex', 'c2', ...client('codex', 'c3')))),
    inherited,
  )
  expect(await Promise.all(['codex-c1', 'gemini-g1', 'codex-c2', 'codex-c3'].map(parent))).toEqual([
    'claude-s1',
    'codex-c1',
    'gemini-g1',
    'codex-c2',
  ])
  // Nobody around the outer one.
  await go(client('gemini', 'g4', ...client('codex', 'c4')))
  expect([await parent('gemini-g4'), await parent('codex-c4')]).toEqual([null, 'gemini-g4'])
})

test('what a run inside of such a session starts is the run’s, whoever is around that [M12]', async () => {
  const { client, go, parent } = await place()
  const inner = [PROGRAM, 'run', '--thread', 'own', '--', ...client('codex', 'c1', ...client('gemini', 'g1'))]
  await go(client('gemini', 'g0', ...inner))
  expect([await parent('codex-c1'), await parent('gemini-g1')]).toEqual(['own', 'codex-c1'])
})

test('where the process of a Codex cannot be seen, its word counts for what it started, and not for what is around it [M12]', async () => {
  const { call: tell, parent } = await place()
  const call = (client: 'claude' | 'codex' | 'gemini', session: string, env: Record<string, string>) =>
    tell({ client, says: start(session), env: { CLAUDE_PID: '999999999', ...env } })
  await call('claude', 's1', {})
  // What it starts has a process that nobody can look at.
  await call('codex', 'c1', { HOLDFAST_THREAD: 'claude-s1' })
  await call('claude', 's2', { HOLDFAST_THREAD: 'claude-s1', CODEX_THREAD_ID: 'c1' })
  expect(await parent('claude-s2')).toBe('codex-c1')
  await call('claude', 's3', { HOLDFAST_THREAD: 'claude-s2', CODEX_THREAD_ID: 'c1' })
  expect(await parent('claude-s3')).toBe('claude-s2')
  await call('claude', 's4', { HOLDFAST_THREAD: 'claude-s2', CODEX_THREAD_ID: 'unheard-of' })
  expect(await parent('claude-s4')).toBe('claude-s2')
  await call('claude', 's5', { CODEX_THREAD_ID: 'c1' })
  expect(await parent('claude-s5')).toBe('codex-c1')
})
