import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import type { viewAsked, viewDoubt } from '../../src/actions/desk.ts'
import type { viewStatement } from '../../src/actions/statement.ts'
import { AgentInstallation } from '../support/agents.ts'
import { startProcess, supervisorsOf, until } from '../support/holdfast.ts'

type Asked = ReturnType<typeof viewAsked>
type Doubt = ReturnType<typeof viewDoubt>
type Statement = ReturnType<typeof viewStatement>

const HOSTILE = 'a\u001b[31m\u202e\u200b\u2028\u{e0041}b\n\n\nc'
const call = (entry: string) => ({ tool: 'note', input: { entry } })

const tool = (command: string) => ({
  effect: 'write',
  description: 'Append one entry',
  input: { type: 'object', properties: { entry: { type: 'string' } }, required: ['entry'] },
  command: ['sh', '-c', command],
})

/** An agent that asks for these writes, and a tool that writes them down. */
const clerkWith = (entries: readonly string[], more: Readonly<Record<string, unknown>> = {}) =>
  new AgentInstallation({
    agents: {
      clerk: {
        replies: [{ text: 'Harmless, \u202eI say.', toolCalls: entries.map(call) }, { text: 'Done.' }],
        tools: ['note'],
        doubt: 'park',
      },
    },
    tools: { note: tool('cat >> ledger.txt; echo >> ledger.txt') },
    policy: [],
    lease: '2s',
    ...more,
  })

const ledger = (place: AgentInstallation): string[] => {
  const file = join(place.folder, 'ledger.txt')
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
}

/** Everything that a terminal would act on, or not show. */
const RAW = /[^\P{C}\n\t]|[\u2028\u2029]/u

describe('approvals from the command line', () => {
  test('a run waits, is listed and shown byte by byte, is decided from another process, and states what it did [approvals/bound] [W1]', async () => {
    const place = clerkWith(['one', HOSTILE, 'three'])
    const sent = await place.run(['send', '--agent', 'clerk', '--wait', 'go'])
    expect({ code: sent.code, waits: sent.stderr.match(/waits for a yes or a no/g) }).toEqual({
      code: 5,
      waits: ['waits for a yes or a no', 'waits for a yes or a no', 'waits for a yes or a no'],
    })
    const asked = await place.json<Asked[]>(['approvals', 'list'])
    const [one, hostile, three] = asked
    expect(asked.map(({ input }) => input)).toEqual(['one', HOSTILE, 'three'].map((entry) => ({ entry })))
    const shown = await place.run(['approvals', 'show', hostile!.id])
    expect(shown.stdout).toContain(String.raw`a\u001b[31m\u{202e}\u{200b}\u{2028}\u{e0041}b\n\n\nc`)
    expect(shown.stdout).toMatch(/the model's own words about it[^\n]*\n {2}\| Harmless, \\u\{202e\}I say\./)
    const listed = await place.run(['approvals', 'list', '--json'])
    for (const text of [shown.stdout, listed.stdout, sent.stderr]) expect(text).not.toMatch(RAW)

    const exits = async (...args: string[]) => (await place.run(['approvals', ...args])).code
    expect([
      await exits('approve', 'apr_nothing'),
      await exits('approve', one!.id, '--digest', 'of something else'),
      await exits('approve', one!.id, '--digest', one!.digest),
      await exits('deny', one!.id),
      await exits('skip', hostile!.id, '--note', 'what is that?'),
      await exits('always', three!.id),
    ]).toEqual([3, 4, 0, 4, 0, 4])
    const inside = await place.run(['approvals', 'approve', three!.id], { HOLDFAST_RUN: one!.runId })
    expect([inside.code, inside.stderr]).toEqual([4, expect.stringContaining('decisions/inside-run')])
    expect(await exits('always', three!.id, '--yes')).toBe(0)

    await place.daemon()
    expect(await place.ended(one!.runId)).toMatchObject({ state: 'succeeded' })
    expect(ledger(place)).toEqual(['{"entry":"one"}', '{"entry":"three"}'])
    const statement = await place.json<Statement>(['runs', 'statement', one!.runId])
    expect(statement).toMatchObject({
      final: true,
      effects: [
        { input: { entry: 'one' }, state: 'done', approvalId: one!.id, allowedBy: { via: 'command line' } },
        { input: { entry: 'three' }, state: 'done', approvalId: three!.id },
      ],
      withoutEffect: [{ state: 'skipped', why: 'a person said: not this one: what is that?' }],
    })
    expect((await place.run(['runs', 'statement', one!.runId])).stdout).not.toMatch(RAW)
    const explained = ['policy', 'explain', '--agent', 'clerk', '--tool', 'note', '--input', '{"entry":"three"}']
    expect(await place.json(explained)).toMatchObject({ decision: 'allow', via: 'stored rule' })
    const [rule] = await place.json<{ id: string }[]>(['policy', 'rules', 'list'])
    expect((await place.run(['policy', 'rules', 'remove', rule!.id])).code).toBe(0)
    expect(await place.json(explained)).toMatchObject({ decision: 'ask', via: 'default' })
  })

  test('what nobody answers in time expires, and the agent is told that', async () => {
    const place = clerkWith(['one'], { approvals: { expire: '500ms' } })
    const { runId } = await place.send('clerk')
    await place.daemon()
    expect(await place.ended(runId)).toMatchObject({ state: 'succeeded', actions: [{ state: 'expired' }] })
    expect(ledger(place)).toEqual([])
  })

  test.skipIf(!existsSync('/usr/bin/script'))('in a terminal they are gone through one by one', async () => {
    const place = clerkWith(['one', 'two', 'three'])
    await place.run(['send', '--agent', 'clerk', '--wait', 'go'])
    const program = join(import.meta.dirname, '..', '..', 'bin', 'holdfast')
    const answers = `(for each in a what s q; do sleep 1; echo $each; done)`
    const desk = `${answers} | script -qec '${program} approvals' /dev/null`
    const { stdout } = await startProcess('/bin/sh', ['-c', desk], { HOLDFAST_HOME: place.home }).ended
    expect(stdout).toContain('(2 more)')
    expect(stdout).toContain('still waiting: 1')
    const [left] = await place.json<Asked[]>(['approvals', 'list'])
    expect(left).toMatchObject({ input: { entry: 'three' } })
  })
})

test('a write that was cut off waits for a person, who says what became of it [actions/no-blind-retry]', async () => {
  const place = clerkWith(['one'], {
    tools: { note: tool('cat >> ledger.txt; echo >> ledger.txt; test -f go || sleep 600') },
    policy: [{ tool: 'note', decision: 'allow' }],
  })
  const { runId } = await place.send('clerk')
  const daemon = await place.daemon()
  await until('it is written', async () => (ledger(place).length === 1 ? true : undefined))
  for (const { pid } of supervisorsOf(place.home)) process.kill(pid, 'SIGKILL')
  daemon.kill('SIGKILL')
  await daemon.ended
  await place.daemon()
  await place.is(runId, 'parked')
  const shown = await place.run(['runs', 'show', runId])
  expect([shown.code, shown.stderr]).toEqual([5, expect.stringContaining('may or may not have happened')])
  expect(await place.json(['status'])).toMatchObject({ needsAPerson: { approvals: 0, doubts: 1 } })
  const [doubt] = await place.json<Doubt[]>(['doubts', 'list'])
  const resolve = (...args: string[]) => place.run(['doubts', 'resolve', doubt!.id, ...args])
  expect([
    (await resolve()).code,
    (await resolve('--happened', '--give-up')).code,
    (await resolve('--happened', '--result', '"it is there"', '--why', 'looked')).code,
    (await resolve('--did-not-happen')).code,
    (await place.run(['doubts', 'resolve', 'act_nothing', '--happened'])).code,
  ]).toEqual([2, 2, 0, 4, 3])
  expect(await place.ended(runId)).toMatchObject({
    state: 'succeeded',
    actions: [
      { state: 'done', result: 'it is there', settledBy: expect.stringMatching(/process \d+\): looked$/) as string },
    ],
  })
  expect(ledger(place)).toHaveLength(1)
})

test('who waits for a run that waits for its child, which waits for a person, is told so', async () => {
  const place = new AgentInstallation({
    agents: {
      boss: {
        replies: [
          { toolCalls: [{ tool: 'delegate', input: { agent: 'clerk', task: 'write', mode: 'wait' } }] },
          { text: 'Done.' },
        ],
        tools: ['delegate'],
      },
      clerk: { replies: [{ toolCalls: [call('one')] }, { text: 'Written.' }], tools: ['note'] },
    },
    tools: { note: tool('cat >> ledger.txt; echo >> ledger.txt') },
    policy: [{ tool: 'delegate', decision: 'allow' }],
  })
  const sent = await place.run(['send', '--agent', 'boss', '--wait', '--json', 'go'])
  const { id, waitsFor } = JSON.parse(sent.stdout) as { id: string; waitsFor: { approvals: string[] } }
  expect([sent.code, waitsFor.approvals]).toEqual([5, [expect.stringMatching(/^apr_/)]])
  expect((await place.run(['approvals', 'approve', waitsFor.approvals[0]!])).code).toBe(0)
  await place.daemon()
  expect(await place.ended(id)).toMatchObject({ state: 'succeeded' })
  expect(ledger(place)).toEqual(['{"entry":"one"}'])
  expect(await place.json<Statement>(['runs', 'statement', id])).toMatchObject({
    effects: [{ tool: 'delegate', state: 'done' }],
    children: [{ agent: 'clerk', state: 'succeeded', effects: 1, inDoubt: 0 }],
  })
})

test('rules that can decide nothing, and names that nothing has, are found', async () => {
  const place = clerkWith([], {
    policy: [
      { tool: 'note', decision: 'deny' },
      { tool: 'note', where: [{ argument: 'entry', prefix: 'a' }], decision: 'allow' },
      { agent: 'clerk', decision: 'allow' },
      { agent: 'clerk', decision: 'ask' },
      { tool: 'note', where: [{ argument: 'entri', equals: 'a' }], decision: 'deny' },
    ],
  })
  const { code, stdout } = await place.run(['policy', 'check', '--json'])
  const { problems } = JSON.parse(stdout) as { problems: { kind: string; text: string }[] }
  expect([code, problems.map(({ kind, text }) => `${kind}: ${text.split(' (')[0]}`)]).toEqual([
    1,
    ['shadowed: policy rule 2', 'contradiction: policy rule 3', 'repeated: policy rule 5', 'stray: policy rule 5'],
  ])
})
