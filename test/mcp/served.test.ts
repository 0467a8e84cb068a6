import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { newMessageId, systemRandomness as random } from '../../src/base/ids.ts'
import { Handed } from '../../src/mcp/handed.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { leaseMessages } from '../../src/threads/delivery.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { BOSS, SELF, makePlace } from './support.ts'

const ADDS = 'adds'
const NAMES = { readOnlyHint: 'looks', destructiveHint: 'takes away', idempotentHint: 'once', openWorldHint: 'outside' }

/** Of each tool the hints that are true; every one of the four is said. */
const HINTS: Readonly<Record<string, string>> = {
  who_am_i: 'looks, once',
  send_message: ADDS,
  delegate: 'outside',
  report_completion: 'once',
  read_inbox: ADDS,
  wait_for_message: ADDS,
  acknowledge_messages: 'once',
  schedule_followup: 'takes away',
  list_followups: 'looks, once',
  cancel_followup: 'takes away, once',
  manage_jobs: 'takes away, outside',
  list_jobs: 'looks, once',
  ask_approval: ADDS,
}

test.for([{ legacy: false }, { legacy: true }])(
  'every tool says what it does, to clients of this protocol and the older one (%o)',
  async (how) => {
    const { connect } = await makePlace()
    const { client } = await connect(how)
    const { tools } = await client.listTools()
    const said = tools.map(({ name, annotations = {}, inputSchema, description = '' }) => {
      expect(Object.keys(annotations)).toEqual(expect.arrayContaining(Object.keys(NAMES)))
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false })
      expect(description.length).toBeGreaterThan(30)
      const hints = Object.entries(NAMES).flatMap(([hint, word]) =>
        annotations[hint as keyof typeof NAMES] === true ? [word] : [],
      )
      return [name, hints.length === 0 ? ADDS : hints.join(', ')]
    })
    expect(Object.fromEntries(said)).toEqual(HINTS)
  },
)

test('who is not known gets nothing, and is told what to do about it', async () => {
  const { store, connect } = await makePlace()
  for (const env of [{}, { CLAUDE_CODE_SESSION_ID: 'another' }]) {
    const { call } = await connect({ env })
    for (const [name, args] of [
      ['read_inbox', {}],
      ['send_message', { to: BOSS, text: 'hello' }],
    ] as const)
      expect((await call(name, args)).error).toMatch(/hooks/)
  }
  expect(await store.read(messagesOf, BOSS)).toEqual([])
})

test('wrong arguments are refused in words, and a thread has no message to itself', async () => {
  const { connect } = await makePlace()
  const { call } = await connect()
  expect((await call('send_message', { to: BOSS })).error).toContain('text: is required')
  expect((await call('delegate', { agent: 'nobody', task: 'x' })).error).toContain('helper')
  expect((await call('schedule_followup', { prompt: 'x' })).error).toContain('delay_seconds')
  expect((await call('send_message', { to: SELF, text: 'x' })).error).toContain('yourself')
  expect((await call('send_message', { to: 'nowhere', text: 'x' })).error).toContain('there is no thread')
  expect((await call('acknowledge_messages', { delivery: 'dlv_no' })).error).toContain('no delivery')
})

test('a call that began beside the one that reads is no sign that its answer has come; one that began after it is', async () => {
  const { store } = await makePlace()
  const body = { text: 'hello' }
  await store.apply(acceptMessage, { id: newMessageId(random), threadId: SELF, kind: 'prompt', key: 'k', body })
  const handed = new Handed(store)
  await handed.begun()
  await handed.begun()
  const by = { kind: 'hand' } as const
  await store.apply(leaseMessages, { id: 'dlv_1', threadId: SELF, by, limit: 1, bytes: 1_000 })
  handed.out('dlv_1', null)
  await handed.close()
  expect(await store.read(messagesOf, SELF)).toMatchObject([{ state: 'leased' }])
  await handed.begun()
  expect(await store.read(messagesOf, SELF)).toMatchObject([{ state: 'consumed' }])
})

test('no other command loads the library of the server', () => {
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
  const hook = `import { registerHooks } from 'node:module'
    registerHooks({ resolve(name, context, next) {
      const found = next(name, context)
      if (found.url.includes('@modelcontextprotocol/server')) console.log('LOADED', name)
      return found
    } })
    const { makeProgram } = await import(${JSON.stringify(main)})
    console.log((await makeProgram(() => {})).commands.map((each) => each.name()).join(' '))
    if (process.argv[1] === 'mcp') await import(${JSON.stringify(main.replace('cli/main.ts', 'mcp/serve.ts'))})`
  const seen = (...args: string[]) =>
    execFileSync(process.execPath, ['--input-type=module', '-e', hook, ...args], { encoding: 'utf8' })
  const help = seen()
  expect(help).toContain(' mcp ')
  expect(help).not.toContain('LOADED')
  // It would have been seen.
  expect(seen('mcp')).toContain('LOADED')
})
