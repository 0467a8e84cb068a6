import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { actionsOfRun } from '../../src/actions/action.ts'
import { findApproval, subjectDigest } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import type { Answer } from '../../src/actions/decide.ts'
import { askedMatters } from '../../src/actions/desk.ts'
import { resolveDoubt } from '../../src/actions/doubt.ts'
import type { PolicyRule } from '../../src/actions/policy.ts'
import { resolved } from '../../src/actions/verdict.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { hear } from '../../src/hooks/hear.ts'
import type { Listener } from '../../src/hooks/hear.ts'
import type { Told } from '../../src/hooks/told.ts'
import { listRuns } from '../../src/runs/run.ts'
import { integer, row } from '../../src/store/row.ts'
import { now, sql } from '../../src/store/sql.ts'
import { one, single } from '../../src/store/transition.ts'
import type { Store } from '../../src/store/store.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import { Installation, until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { callHook, says } from './support.ts'

const databaseNow = single(() => one(row({ at: integer }), sql`select ${now} as at`))

const PRINT = { CLAUDE_CODE_ENTRYPOINT: 'sdk-cli' }
const ATTENDED = { CLAUDE_CODE_ENTRYPOINT: 'cli' }

const pays = (command = 'pay', tool_use_id = 'toolu_1') => ({ tool_name: 'Bash', tool_input: { command }, tool_use_id })

interface Answered {
  readonly permissionDecision?: string
  readonly permissionDecisionReason?: string
  readonly decision?: { readonly behavior: string }
}

const answered = (output: string) => {
  if (output === '') return undefined
  const { hookSpecificOutput } = JSON.parse(output) as { hookSpecificOutput: Answered }
  const { permissionDecision, permissionDecisionReason = '', decision } = hookSpecificOutput
  return { decision: permissionDecision ?? decision, why: permissionDecisionReason }
}

/** What the client is answered by the command that asks for leave. */
async function asksByHook(home: string, env: Readonly<Record<string, string>>, more: object, event = 'PreToolUse') {
  const { stdout, code } = await callHook({ home, env, args: ['--permit'], says: says(event, more) })
  expect(code).toBe(0)
  return answered(stdout)
}

/** One session in print mode, as whoever hears it knows it. */
class Session {
  readonly #listener: Listener
  readonly #more: Partial<Told>
  #number = 1_000

  constructor(listener: Listener, more: Partial<Told> = {}) {
    this.#listener = listener
    this.#more = more
  }

  async tells(event: string, more: object = {}, told: Partial<Told> = {}) {
    const input = JSON.stringify(says(event, more))
    const ordinal = (this.#number += 1)
    const process = { pid: 7, startTime: 1, boot: 'b', pidNamespace: 'n' }
    const all = { client: 'claude', id: `e${ordinal}`, input, ordinal, shown: null, process, ...this.#more, ...told }
    return (await hear(this.#listener, all as Told)).output
  }

  async asks(more: object = pays(), told: Partial<Told> = {}) {
    return answered(await this.tells('PreToolUse', more, { role: 'permit', ...told }))
  }
}

const RULES: readonly PolicyRule[] = []

async function inTurn(store: Store, more: Partial<Told> = {}): Promise<Session> {
  const session = new Session({ store, random, policy: RULES }, more)
  await session.tells('SessionStart', { source: 'startup' })
  await session.tells('UserPromptSubmit', { prompt: 'go' })
  return session
}

async function aStore(): Promise<Store> {
  const store = await openSqliteStore({ path: join(temporaryFolder(), 'holdfast.db') })
  onTestFinished(() => store.close())
  return store
}

async function theMatter(store: Store) {
  return until('a person is asked', async () => (await store.read(askedMatters, 5))[0])
}

async function decide(store: Store, kind: Answer['kind'], note?: string) {
  const { approval } = await theMatter(store)
  const answer = { kind, digest: approval.digest, by: 'ann', via: 'test', ...(note === undefined ? {} : { note }) }
  expect(await store.apply(decideApproval, approval.id, answer)).toMatchObject({ kind: 'decided' })
  return approval
}

async function inTurnByHook(env: Readonly<Record<string, string>> = PRINT) {
  const home = join(temporaryFolder(), 'home')
  await callHook({ home, env, says: says('UserPromptSubmit', { prompt: 'go' }) })
  const store = await openSqliteStore({ path: join(home, 'holdfast.db') })
  onTestFinished(() => store.close())
  return { home, store }
}

test.each(engines)(
  'a call that was deferred gets the yes of a person once ($name); a changed byte and a second use ask afresh [approvals/bound]',
  async (engine) => {
    const store = await (await engine.database()).open()
    const session = await inTurn(store, { startedFrom: 'parent' })
    expect(await session.asks()).toMatchObject({ decision: 'defer' })
    await session.tells('SessionEnd', { reason: 'other' })
    const { run } = await theMatter(store)
    expect(run).toMatchObject({ state: 'parked', parkedFor: 'a decision' })
    const approval = await decide(store, 'approve')
    expect(await store.read(listRuns, { limit: 5 })).toMatchObject([{ state: 'parked', parkedFor: 'its client' }])
    await session.tells('SessionStart', { source: 'resume' })
    expect(await session.asks(pays('pay twice'))).toMatchObject({ decision: 'defer' })
    expect(await store.read(findApproval, approval.id)).toMatchObject({ state: 'approved' })
    const used = { id: 'e-used', ordinal: 5_000 }
    const allowed = { decision: 'allow', why: 'allowed by ann, by test' }
    expect(await session.asks(pays(), used)).toEqual(allowed)
    expect(await store.read(findApproval, approval.id)).toMatchObject({ state: 'consumed', decidedBy: 'ann' })
    // The same event told again, because its answer was lost, is no second use; another one is.
    expect(await session.asks(pays(), used)).toEqual(allowed)
    expect(await session.asks()).toMatchObject({
      decision: 'deny',
      why: expect.stringContaining('been used') as string,
    })
    expect(await session.asks(pays('pay', 'toolu_2'))).toMatchObject({ decision: 'defer' })
    const actions = await store.read(actionsOfRun, run.id)
    expect(actions.map(({ state }) => state)).toEqual(['started', 'waiting', 'waiting'])
    expect(await store.read(messagesOf, 'parent' as ThreadId)).toContainEqual(
      expect.objectContaining({ kind: 'waiting', state: 'pending' }),
    )
    await assertInvariants(store)
  },
)

test.each([
  ['deny', 'a person said no: Monday'],
  ['skip', 'a person said: not this one: Monday'],
] as const)('after %s the model is told so, and the same call gets the same answer', async (kind, why) => {
  const store = await aStore()
  const session = await inTurn(store)
  await session.asks()
  await decide(store, kind, 'Monday')
  expect(await session.asks()).toEqual({ decision: 'deny', why })
  const again = await session.asks(pays('pay', 'toolu_2'))
  expect(again).toMatchObject({ decision: 'deny', why: expect.stringContaining(why) as string })
  expect(await store.read(askedMatters, 5)).toEqual([])
  await assertInvariants(store)
})

test('nobody answered in time: the model is told that, and may ask afresh', async () => {
  const store = await aStore()
  const session = new Session({ store, random, policy: RULES, approvalMs: 1 })
  await session.asks()
  const { approval } = await theMatter(store)
  await until('its time is over', async () =>
    (await store.read(databaseNow)).at > approval.expiresAt ? true : undefined,
  )
  expect(await session.asks()).toEqual({ decision: 'deny', why: 'nobody answered in time whether it may be done' })
  expect(await session.asks(pays('pay', 'toolu_2'))).toMatchObject({ decision: 'defer' })
  await assertInvariants(store)
})

test('a deny that has come meanwhile wins over a yes', async () => {
  const store = await aStore()
  await (await inTurn(store)).asks()
  const approval = await decide(store, 'approve')
  const strict = new Session({ store, random, policy: [{ tool: 'Bash', decision: 'deny' }] })
  expect(await strict.asks(pays(), { ordinal: 9_000 })).toMatchObject({ decision: 'deny' })
  expect(await store.read(findApproval, approval.id)).toMatchObject({ state: 'approved' })
  await assertInvariants(store)
})

test('a session that is not resumed for its answer but given something else to do asks nobody any more', async () => {
  const store = await aStore()
  const session = await inTurn(store)
  await session.asks()
  const { approval } = await theMatter(store)
  await session.tells('UserPromptSubmit', { prompt_id: 'p2' })
  expect(await store.read(findApproval, approval.id)).toMatchObject({ state: 'withdrawn' })
  await assertInvariants(store)
})

test('rules of the configuration answer at once; what only looks is the client’s own business', async () => {
  const installation = new Installation()
  const { home } = installation
  const policy = [
    { agent: 'claude', tool: 'Edit', decision: 'allow' },
    { agent: 'claude', tool: 'Read', where: [{ argument: 'file_path', path: 'secrets/**' }], decision: 'deny' },
  ]
  writeFileSync(installation.configuration, JSON.stringify({ policy }))
  await installation.up()
  const use = (tool_name: string, file_path: string) =>
    asksByHook(home, PRINT, { tool_name, tool_input: { file_path }, tool_use_id: `${tool_name} ${file_path}` })
  expect(await use('Edit', 'a')).toMatchObject({ decision: 'allow' })
  expect(await use('Read', 'secrets/key')).toMatchObject({ decision: 'deny' })
  expect(await use('Read', '/srv/project/secrets/.env')).toMatchObject({ decision: 'deny' })
  expect(await use('Read', 'a')).toBeUndefined()
  expect(await use('Write', 'a')).toMatchObject({ decision: 'defer' })
})

test('without a daemon nobody knows the rules, so whatever no stored rule allows is asked for', async () => {
  const { home } = await inTurnByHook()
  const look = { tool_name: 'Read', tool_input: { file_path: 'a' }, tool_use_id: 't' }
  expect(await asksByHook(home, PRINT, look)).toMatchObject({ decision: 'defer' })
})

test('a subagent cannot wait for a person, and is told so', async () => {
  const store = await aStore()
  const nested = await (await inTurn(store)).asks({ ...pays(), agent_id: 'a1' })
  expect(nested).toMatchObject({ decision: 'deny', why: expect.stringContaining('main conversation') as string })
  expect(await store.read(askedMatters, 5)).toEqual([])
})

test('an open dialog is answered by whoever decides elsewhere', async () => {
  const { home, store } = await inTurnByHook(ATTENDED)
  expect(await asksByHook(home, ATTENDED, pays())).toMatchObject({ decision: 'ask' })
  const { tool_use_id: _, ...unnamed } = pays()
  const answer = asksByHook(home, ATTENDED, unnamed, 'PermissionRequest')
  const approval = await decide(store, 'approve')
  expect(await answer).toMatchObject({ decision: { behavior: 'allow' } })
  expect(await store.read(findApproval, approval.id)).toMatchObject({ state: 'consumed' })
  await callHook({ home, env: ATTENDED, args: ['--settle'], says: says('PostToolUse', pays()) })
  expect(await store.read(actionsOfRun, approval.runId)).toMatchObject([{ state: 'done' }])
  await assertInvariants(store)
})

test('somebody answers in the client: the request is withdrawn, and who holds it says nothing more', async () => {
  const { home, store } = await inTurnByHook(ATTENDED)
  const { tool_use_id: _, ...unnamed } = pays()
  const answer = asksByHook(home, ATTENDED, unnamed, 'PermissionRequest')
  const { approval } = await theMatter(store)
  await callHook({ home, env: ATTENDED, args: ['--settle'], says: says('PostToolUse', pays()) })
  expect(await answer).toBeUndefined()
  expect(await store.read(findApproval, approval.id)).toMatchObject({ state: 'withdrawn', decidedBy: null })
  const late = { kind: 'approve', digest: approval.digest, by: 'ann', via: 'test' } as const
  expect(await store.apply(decideApproval, approval.id, late)).toMatchObject({ kind: 'too-late' })
  await assertInvariants(store)
})

test('a client that dies over a call that was approved leaves it in doubt, which is not ours to do again', async () => {
  const store = await aStore()
  const session = await inTurn(store)
  await session.asks()
  await decide(store, 'approve')
  await session.asks()
  await session.tells('SessionEnd', { reason: 'other' })
  const [run] = await store.read(listRuns, { limit: 1 })
  expect(run).toMatchObject({ state: 'failed', code: 'killed' })
  const [doubt] = await store.read(actionsOfRun, run!.id)
  expect(doubt).toMatchObject({ state: 'in_doubt' })
  const again = await store.apply(resolveDoubt, doubt!.id, { kind: 'run-again', by: 'ann' })
  expect(again).toEqual({ kind: 'observed', client: 'claude' })
  expect(() => resolved(doubt!.id, again)).toThrow(/claude made itself/)
  expect(await store.apply(resolveDoubt, doubt!.id, { kind: 'did-not-happen', by: 'ann' })).toMatchObject({
    kind: 'resolved',
  })
  await assertInvariants(store)
})

test('what is decided on are the tool, its exact arguments and the folder', async () => {
  const store = await aStore()
  await (await inTurn(store)).asks()
  const { approval } = await theMatter(store)
  const subject = { tool: 'Bash', version: 'claude in /', input: { command: 'pay' } }
  expect(approval).toMatchObject({ digest: subjectDigest(subject), state: 'pending' })
  expect(JSON.parse(approval.shown)).toEqual(subject)
})

test('a gate whose store cannot be reached does not let anything through', async () => {
  const gone = { home: join('/proc', 'no-home'), env: PRINT, args: ['--permit'], says: says('PreToolUse', pays()) }
  expect(await callHook(gone)).toMatchObject({ code: 1, stdout: '' })
})
