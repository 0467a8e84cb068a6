import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { newMessageId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { temporaryFolder } from '../support/engines.ts'
import { Installation, PROGRAM } from '../support/holdfast.ts'
import { HOOK, NODE, callHook, run } from './support.ts'

const start = (session: string) => ({
  session_id: session,
  hook_event_name: 'SessionStart',
  source: 'startup',
  cwd: '/',
})

test('"self" in what a Gemini CLI starts is the session whose process is above it, also inside of another client [M12]', async () => {
  const installation = new Installation()
  const { home } = installation
  await installation.up()
  const self = async (env: Record<string, string>) => {
    const { code, stdout } = await installation.run(['threads', 'show', 'self', '--json'], env)
    return code === 0 ? (JSON.parse(stdout) as { id: string }).id : code
  }
  // This process stands for the client: nothing above the hook is called gemini.
  await callHook({ home, client: 'gemini', says: start('g1') })
  expect(await self({})).toBe(2)
  expect(await self({ GEMINI_CLI: '1' })).toBe('gemini-g1')
  // Whoever is around it is inherited: by its variable, and by the thread that it was started from.
  expect(await self({ GEMINI_CLI: '1', HOLDFAST_THREAD: 'claude-s1' })).toBe('gemini-g1')
  await callHook({ home, says: start('s1'), env: { CLAUDE_PID: String(process.ppid) } })
  await callHook({ home, client: 'gemini', says: start('g2'), env: { HOLDFAST_THREAD: 'claude-s1' } })
  expect(await self({ GEMINI_CLI: '1', CLAUDE_CODE_SESSION_ID: 's1' })).toBe('gemini-g2')
  // A run that it starts is not the session.
  const inner = ['run', '--', 'sh', '-c', 'echo "[$GEMINI_CLI]"']
  expect((await installation.run(inner, { GEMINI_CLI: '1' })).stdout).toBe('[]\n')
})

/** Stands for Gemini CLI: a script of that name, and the command that its model wants. */
const STARTS = `const { spawnSync } = require('node:child_process');
  process.exit(spawnSync('sh', ['-c', process.argv[2]], { stdio: 'inherit' }).status)`

test('"self" inside of a Gemini CLI without hooks is nobody, also where one with hooks has started it; the nearest session is never in doubt [M12]', async () => {
  const installation = new Installation()
  const { home } = installation
  await installation.up()
  // This process is the outer one, of two sessions that know nothing of each other.
  await callHook({ home, says: start('s1'), env: { CLAUDE_PID: String(process.ppid) } })
  await callHook({ home, client: 'gemini', says: start('g1') })
  const folder = temporaryFolder()
  const self = async (script: string, more: Record<string, string> = {}) => {
    const client = join(folder, script)
    writeFileSync(client, STARTS)
    const env = { PATH: process.env['PATH'] ?? '', HOME: home, HOLDFAST_HOME: home, GEMINI_CLI: '1', ...more }
    const { code, stdout } = await run(NODE, [client, `${PROGRAM} threads show self --json`], { env })
    return code === 0 ? (JSON.parse(stdout) as { id: string }).id : code
  }
  expect(await self('gemini')).toBe(3)
  expect(await self('gemini.js')).toBe(3)
  // A program of somebody's with a name like it is none.
  expect(await self('gemini-watch.js')).toBe('gemini-g1')
  expect(await self('around.cjs', { CLAUDE_CODE_SESSION_ID: 's1' })).toBe('gemini-g1')
  expect(await self('gemini', { CLAUDE_CODE_SESSION_ID: 's1' })).toBe(3)
  // As a run it has the run's thread, whoever is around that.
  const inner = [NODE, join(folder, 'gemini'), `GEMINI_CLI=1 ${PROGRAM} threads show self --json`]
  const { stdout } = await installation.run(['run', '--thread', 'own', '--', ...inner], { GEMINI_CLI: '1' })
  expect((JSON.parse(stdout) as { id: string }).id).toBe('own')
})

/** Stands for Gemini CLI: a script of that name, which calls its hook through a shell and a program of somebody's. */
const CLIENT = `const { spawnSync } = require('node:child_process');
  for (const said of JSON.parse(process.argv[3])) {
    const { stdout } = spawnSync('sh', ['-c', process.argv[2] + '; exit $?'], { input: JSON.stringify(said) });
    console.log(JSON.stringify(stdout.toString()));
  }`
const AROUND = `const { spawnSync } = require('node:child_process');
  process.exit(spawnSync(process.execPath, process.argv.slice(2), { stdio: 'inherit' }).status)`

test('a hook of Gemini that is called through a program of somebody else knows its client, and gives a message once [M5]', async () => {
  const installation = new Installation()
  const { home } = installation
  await installation.up()
  await callHook({ home, client: 'gemini', says: start('g1') })
  const store = await openSqliteStore({ path: join(home, 'holdfast.db') })
  onTestFinished(() => store.close())
  const threadId = 'gemini-g1' as ThreadId
  const body = { summary: 'the words' }
  await store.apply(acceptMessage, { id: newMessageId(random), threadId, kind: 'completion', key: 'a', body })
  const folder = temporaryFolder()
  const [client, around] = [join(folder, 'gemini'), join(folder, 'around.cjs')]
  writeFileSync(client, CLIENT)
  writeFileSync(around, AROUND)
  const end = { ...start('g1'), hook_event_name: 'AfterAgent', prompt: 'go on', prompt_response: 'done' }
  const said = [{ ...start('g1'), hook_event_name: 'BeforeAgent', prompt: 'go on' }, end, end]
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, HOLDFAST_HOME: home }
  const { stdout } = await run(NODE, [client, `${NODE} ${around} ${HOOK} gemini`, JSON.stringify(said)], { env })
  const answers = stdout.trim().split('\n')
  expect(answers.map((answer) => answer.split('the words').length - 1)).toEqual([0, 1, 0])
  expect(await store.read(messagesOf, threadId)).toMatchObject([{ state: 'consumed' }])
})
