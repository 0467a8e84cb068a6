import { describe, expect, test } from 'vitest'

import { findAction } from '../../src/actions/action.ts'
import { doubtAgain, openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import { approvalsOfRun, pendingApprovals } from '../../src/actions/approval.ts'
import { decideApproval, expireApprovals } from '../../src/actions/decide.ts'
import type { Answer } from '../../src/actions/decide.ts'
import { settleAction } from '../../src/actions/perform.ts'
import { judge } from '../../src/actions/policy.ts'
import { addRule, narrowestRule, removeRule, rulesInForce, storedRules } from '../../src/actions/rule.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { eventsAfter } from '../../src/events/event.ts'
import type { ToolOutcome } from '../../src/loop/ports.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { refOf } from '../../src/workers/execute.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { Stage } from '../support/stage.ts'
import { reread } from '../support/world.ts'

const answer = (kind: Answer['kind'], digest: string): Answer => ({ kind, digest, by: 'ann', via: 'test' })
const toolResults = (stage: Stage, request: number) =>
  (stage.asked[request]?.messages ?? []).flatMap((message) => (message.role === 'tool' ? [message.text] : []))

describe.each(engines)('decisions on $name', (engine) => {
  const open = async () => {
    const clock = new FakeClock()
    const stage = new Stage(await (await engine.database()).open({ clock }))
    stage.policy = []
    return { stage, clock, store: stage.store }
  }

  /** A run that asked for these writes and waits. */
  async function waiting(entries: readonly string[], then = 'Done.') {
    const world = await open()
    const { stage, store } = world
    stage.replies = [{ calls: entries.map((entry) => ['append', { entry }]) }, { text: then }]
    const { runId } = await stage.send('go')
    expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
    expect(await reread(store, runId!)).toMatchObject({ state: 'parked', parkedFor: 'a decision' })
    return { ...world, runId: runId!, approvals: await store.read(pendingApprovals, 10) }
  }

  test('a write that no rule allows waits for a person, parked, and goes on when one said yes [W1]', async () => {
    const { stage, store, runId, approvals } = await waiting(['a', 'b'])
    expect(stage.effects).toEqual([])
    expect(approvals.map(({ shown }) => JSON.parse(shown) as unknown)).toMatchObject([
      { tool: 'append', input: { entry: 'a' } },
      { tool: 'append', input: { entry: 'b' } },
    ])
    const [first, second] = approvals
    expect(await store.apply(decideApproval, first!.id, answer('approve', first!.digest))).toMatchObject({
      kind: 'decided',
    })
    expect(await reread(store, runId)).toMatchObject({ state: 'queued' })
    expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
    expect(stage.effects).toEqual(['a'])
    await store.apply(decideApproval, second!.id, answer('skip', second!.digest))
    await stage.finished(await stage.claim())
    expect(stage.effects).toEqual(['a'])
    expect(toolResults(stage, 1)).toEqual(['did a', 'skipped: a person said: not this one'])
    expect(await store.read(approvalsOfRun, runId)).toMatchObject([
      { state: 'consumed', decidedBy: 'ann', decidedVia: 'test' },
      { state: 'skipped' },
    ])
    await assertInvariants(store)
  })

  test('a decision covers what was shown, once: other bytes, a second answer and a late one are refused [approvals/bound]', async () => {
    const { store, clock, approvals } = await waiting(['a'])
    const [approval] = approvals
    expect(await store.apply(decideApproval, approval!.id, answer('approve', 'of something else'))).toMatchObject({
      kind: 'changed',
    })
    await store.apply(decideApproval, approval!.id, answer('deny', approval!.digest))
    expect(await store.apply(decideApproval, approval!.id, answer('approve', approval!.digest))).toMatchObject({
      kind: 'too-late',
      approval: { state: 'denied' },
    })
    expect(await store.apply(decideApproval, 'apr_nothing', answer('approve', ''))).toEqual({ kind: 'unknown' })
    clock.step(1)
    await assertInvariants(store)
  })

  test('nobody answered is expired, and the agent is told that [W3]', async () => {
    const { stage, store, clock, approvals } = await waiting(['a'])
    clock.step(LIMITS.approvalMs)
    const [approval] = approvals
    expect(await store.apply(decideApproval, approval!.id, answer('approve', approval!.digest))).toMatchObject({
      kind: 'too-late',
    })
    await store.apply(expireApprovals, 10)
    await stage.finished(await stage.claim())
    expect(toolResults(stage, 1)).toEqual(['expired: nobody answered in time whether it may be done'])
    expect(stage.effects).toEqual([])
  })

  test('an approval that ran out before the action began is not used', async () => {
    const { stage, store, clock, approvals } = await waiting(['a'])
    const [approval] = approvals
    await store.apply(decideApproval, approval!.id, answer('approve', approval!.digest))
    clock.step(LIMITS.approvalMs)
    await stage.finished(await stage.claim())
    expect(stage.effects).toEqual([])
    expect(toolResults(stage, 1)[0]).toContain('expired: its approval is over')
  })

  test('a tool that is not the one any more that was approved is not used [approvals/bound]', async () => {
    const { stage, store, approvals } = await waiting(['a'])
    const [approval] = approvals
    await store.apply(decideApproval, approval!.id, answer('approve', approval!.digest))
    stage.idempotent = true
    await stage.finished(await stage.claim())
    expect(stage.effects).toEqual([])
    expect(toolResults(stage, 1)[0]).toContain('not the one any more that was approved')
  })

  test('a deny that comes after the approval wins', async () => {
    const { stage, store, approvals } = await waiting(['a'])
    const [approval] = approvals
    await store.apply(decideApproval, approval!.id, answer('approve', approval!.digest))
    stage.policy = [{ tool: 'append', decision: 'deny' }]
    await stage.finished(await stage.claim())
    expect(stage.effects).toEqual([])
    expect(toolResults(stage, 1)[0]).toContain('denied by policy rule 1')
  })

  test('after skip or deny the same call has the same answer without asking again, another call is asked for [W4] [W6]', async () => {
    const { stage, store, approvals } = await waiting(['a'])
    stage.replies = [
      { calls: [['append', { entry: 'a' }]] },
      {
        calls: [
          ['append', { entry: 'a' }],
          ['append', { entry: 'b' }],
        ],
      },
      { text: 'Done.' },
    ]
    const [approval] = approvals
    await store.apply(decideApproval, approval!.id, answer('deny', approval!.digest))
    expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
    const pending = await store.read(pendingApprovals, 10)
    expect(pending.map(({ shown }) => JSON.parse(shown) as unknown)).toMatchObject([{ input: { entry: 'b' } }])
    await store.apply(decideApproval, pending[0]!.id, answer('approve', pending[0]!.digest))
    await stage.finished(await stage.claim())
    expect(stage.effects).toEqual(['b'])
    expect(toolResults(stage, 2).slice(1)).toEqual([expect.stringContaining('as before'), 'did b'])
  })

  test('an approved read covers identical reads of its run, and no write [W4] [W6]', async () => {
    const { stage, store } = await open()
    stage.policy = [{ tool: 'look', decision: 'ask' }]
    stage.replies = [
      { calls: [['look', { entry: 'a' }]] },
      { calls: [['look', { entry: 'a' }]] },
      { calls: [['append', { entry: 'a' }]] },
      { text: 'Done.' },
    ]
    await stage.send('go')
    await stage.run(await stage.claim())
    const [approval] = await store.read(pendingApprovals, 10)
    await store.apply(decideApproval, approval!.id, answer('approve', approval!.digest))
    expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
    expect(stage.effects).toEqual(['a', 'a'])
    expect(await store.read(pendingApprovals, 10)).toMatchObject([
      { shown: expect.stringContaining('append') as string },
    ])
  })

  test('a yes is for one write: the identical one of a tool that acts each time is asked for again [approvals/bound]', async () => {
    const { stage, store } = await open()
    const call = { calls: [['shout', { entry: 'a' }]] } as const
    stage.replies = [call, call, { text: 'Done.' }]
    await stage.send('go')
    await stage.run(await stage.claim())
    const [approval] = await store.read(pendingApprovals, 10)
    await store.apply(decideApproval, approval!.id, answer('approve', approval!.digest))
    expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
    expect(stage.effects).toEqual(['a'])
    expect(await store.read(pendingApprovals, 10)).toMatchObject([{ digest: approval!.digest, state: 'pending' }])
    await assertInvariants(store)
  })

  test('a cancelled run withdraws what it asked for, and a late answer changes nothing [runs/cancel-is-final]', async () => {
    const { stage, store, runId, approvals } = await waiting(['a'])
    await store.apply(cancelRun, runId, { by: 'ann' })
    expect(await store.apply(decideApproval, approvals[0]!.id, answer('approve', approvals[0]!.digest))).toMatchObject({
      kind: 'too-late',
      approval: { state: 'withdrawn' },
    })
    expect(stage.effects).toEqual([])
    await assertInvariants(store)
  })

  test('decisions at the moment of parking: the run is never left asleep', async () => {
    const { stage, store } = await open()
    for (let round = 0; round < 5; round += 1) {
      stage.replies = Array.from({ length: 2 * round + 2 }, (_, index) =>
        index % 2 === 0 ? { calls: [['append', { entry: `r${index}` }]] } : { text: 'Done.' },
      )
      const { runId } = await stage.send(`go ${round}`)
      const claim = await stage.claim()
      const left = stage.run(claim)
      const deadline = performance.now() + 10_000
      for (let decided = false; !decided && performance.now() < deadline;) {
        const [approval] = await store.read(pendingApprovals, 10)
        await new Promise((resolve) => setImmediate(resolve))
        if (approval === undefined) continue
        decided =
          (await store.apply(decideApproval, approval.id, answer('approve', approval.digest))).kind === 'decided'
      }
      const end = await left
      // It parked first and was woken, or it saw the decision before it parked.
      if (end.kind === 'left') await stage.finished(await stage.claim())
      else if (end.kind === 'finished') await store.apply(finishRun, refOf(claim), end.outcome)
      expect(await reread(store, runId!)).toMatchObject({ state: 'succeeded' })
    }
    expect(stage.effects).toHaveLength(5)
  })

  test('a rule that a person made holds from then on, until it is taken back [W4]', async () => {
    const { stage, store, approvals } = await waiting(['a'])
    const [action] = await stage.actionsOf(approvals[0]!.runId)
    const narrow = narrowestRule(action!, 'clerk')
    if (!('rule' in narrow)) throw new Error(narrow.refused)
    expect(narrow.rule).toEqual({
      tool: 'append',
      agent: 'clerk',
      where: [{ argument: 'entry', equals: 'a' }],
      only: true,
      decision: 'allow',
    })
    await store.apply(addRule, { id: 'rule_1', rule: narrow.rule, by: 'ann' })
    await store.apply(addRule, { id: 'rule_1', rule: narrow.rule, by: 'ann' })
    expect(await store.read(storedRules)).toHaveLength(1)
    await store.apply(decideApproval, approvals[0]!.id, answer('approve', approvals[0]!.digest))
    await stage.finished(await stage.claim())
    stage.replies = [...stage.replies, { calls: [['append', { entry: 'a' }]] }, { text: 'Again.' }]
    await stage.send('again')
    await stage.finished(await stage.claim())
    expect(stage.effects).toEqual(['a', 'a'])
    await store.apply(removeRule, 'rule_1', 'ann')
    expect(await store.read(storedRules)).toEqual([])
  })

  test('a rule that "always" made before it said so is for exactly its arguments, too [approvals/bound]', async () => {
    const { store } = await open()
    const rule = {
      tool: 'pay',
      agent: 'clerk',
      where: [{ argument: 'to', equals: 'landlord' }],
      decision: 'allow',
    } as const
    await store.apply(addRule, { id: 'rule_1', rule, by: 'ann' })
    await store.apply(addRule, { id: 'rule_2', rule: { ...rule, tool: 'deploy', where: [] }, by: 'ann' })
    const rules = await store.read(rulesInForce)
    const of = (tool: string, input: unknown) => judge(rules, { tool, effect: 'write', agent: 'clerk', input }).kind
    expect([of('pay', { to: 'landlord' }), of('pay', { to: 'landlord', euros: 90_000 })]).toEqual(['allow', 'ask'])
    expect([of('deploy', {}), of('deploy', { target: 'prod' })]).toEqual(['allow', 'ask'])
    expect((await store.read(storedRules)).map((each) => each.rule.only)).toEqual([true, true])
  })

  describe('a write that was cut off', () => {
    /** It had started when its worker died, and nobody knows. */
    async function inDoubt() {
      const { stage, store } = await open()
      stage.policy = [{ decision: 'allow' }]
      stage.doubts = 'park'
      stage.perform = () => Promise.reject(new Error('the connection was cut'))
      stage.replies = [{ calls: [['append', { entry: 'a' }]] }, { text: 'Done.' }]
      const { runId } = await stage.send('go')
      expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
      expect(await reread(store, runId!)).toMatchObject({ state: 'parked' })
      const [doubt] = await store.read(openDoubts, 10)
      stage.perform = (entry) => Promise.resolve({ kind: 'done', result: `did ${entry}` })
      return { stage, store, runId: runId!, doubt: doubt! }
    }

    test.each([
      ['happened', { kind: 'happened', result: 'it is there' }, ['it is there'], []],
      ['did not happen', { kind: 'did-not-happen' }, ['failed: it did not happen, as ann: looked says'], []],
      ['did not happen, and is done now', { kind: 'run-again' }, ['did a'], ['a']],
      [
        'nobody will know',
        { kind: 'give-up' },
        [expect.stringContaining('unknown: it may or may not have happened')],
        [],
      ],
    ] as const)('is settled by a person: %s [actions/no-blind-retry]', async (_title, resolution, told, effects) => {
      const { stage, store, doubt } = await inDoubt()
      expect(await store.apply(resolveDoubt, doubt.id, { ...resolution, by: 'ann', why: 'looked' })).toMatchObject({
        kind: 'resolved',
      })
      await stage.finished(await stage.claim())
      expect(toolResults(stage, 1)).toEqual(told)
      expect(stage.effects).toEqual(effects)
      expect(await store.apply(resolveDoubt, doubt.id, { kind: 'did-not-happen', by: 'bob' })).toMatchObject({
        kind: 'not-in-doubt',
      })
      await assertInvariants(store)
    })

    test('is not done again where its probe says that it was done since, whatever a person had seen [actions/no-blind-retry]', async () => {
      const { stage, store, doubt } = await inDoubt()
      stage.probe = () => Promise.resolve({ kind: 'done', result: 'it is there by now' })
      await store.apply(resolveDoubt, doubt.id, { kind: 'run-again', by: 'ann' })
      await stage.finished(await stage.claim())
      expect(toolResults(stage, 1)).toEqual(['it is there by now'])
      expect(stage.effects).toEqual([])
      await assertInvariants(store)
    })

    test.each([
      ['done', ['did a'], []],
      ['failed', ['did a'], ['a']],
    ] as const)(
      'is run again, as a person says, unless who had begun it says before that what became of it: %s [actions/once]',
      async (state, told, effects) => {
        const { stage, store, doubt } = await inDoubt()
        await store.apply(resolveDoubt, doubt.id, { kind: 'run-again', by: 'ann' })
        await store.apply(settleAction, doubt, { state, result: 'did a', by: 'the tool' })
        await stage.finished(await stage.claim())
        expect(toolResults(stage, 1)).toEqual(told)
        expect(stage.effects).toEqual(effects)
        await assertInvariants(store)
      },
    )

    test('of a run that has ended can still be settled, but not done again', async () => {
      const { store, runId, doubt } = await inDoubt()
      await store.apply(cancelRun, runId, { by: 'ann' })
      expect(await store.apply(resolveDoubt, doubt.id, { kind: 'run-again', by: 'ann' })).toMatchObject({
        kind: 'run-ended',
      })
      expect(await store.apply(resolveDoubt, doubt.id, { kind: 'happened', by: 'ann' })).toMatchObject({
        kind: 'resolved',
      })
      expect(await store.apply(resolveDoubt, 'act_none' as never, { kind: 'happened', by: 'ann' })).toEqual({
        kind: 'unknown',
      })
    })

    test('and was to be done again when its run ended is in doubt again: who had begun it may still do it [actions/no-blind-retry]', async () => {
      const { store, runId, doubt } = await inDoubt()
      await store.apply(resolveDoubt, doubt.id, { kind: 'run-again', by: 'ann' })
      await store.apply(cancelRun, runId, { by: 'ann' })
      const [again] = await store.read(openDoubts, 10)
      expect(again).toMatchObject({ id: doubt.id, error: 'its run ended before it was done again' })
      // It comes back and says what became of it.
      await store.apply(settleAction, doubt, { state: 'done', result: 'did a', by: 'the tool' })
      expect(await store.read(openDoubts, 10)).toEqual([])
      await assertInvariants(store)
    })
  })

  describe('of two identical calls the second was to be done again when the first had begun', () => {
    /** `how` the first one ends; its run is cancelled meanwhile, so nobody comes to the second. */
    async function cancelledBetween(how: () => Promise<ToolOutcome>) {
      const { stage, store, runId, approvals } = await waiting(['a', 'a'])
      const [first, second] = approvals.map(({ actionId }) => actionId)
      stage.perform = () => Promise.reject(new Error('the connection was cut'))
      await store.apply(decideApproval, approvals[1]!.id, answer('approve', approvals[1]!.digest))
      expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
      await store.apply(resolveDoubt, second!, { kind: 'run-again', by: 'ann' })
      await store.apply(decideApproval, approvals[0]!.id, answer('approve', approvals[0]!.digest))
      const claim = await stage.claim()
      const stop = new AbortController()
      stage.perform = async () => {
        await store.apply(cancelRun, runId, { by: 'ann' })
        stop.abort()
        return how()
      }
      expect(await stage.run(claim, stop.signal)).toMatchObject({ kind: 'stopped' })
      return { store, claim, first: first!, second: second! }
    }

    test('its run ends all the same, and whoever is asked about doubts is told of it again [actions/no-blind-retry]', async () => {
      const { store, claim, first, second } = await cancelledBetween(() => Promise.reject(new Error('it was stopped')))
      expect(await store.apply(finishRun, refOf(claim), { state: 'cancelled' })).toMatchObject({ kind: 'finished' })
      expect((await store.read(openDoubts, 10)).map(({ id }) => id)).toEqual([first, second])
      const told = (await store.read(eventsAfter, 0, 100)).filter(({ type }) => type === 'action.settled')
      expect(told.at(-1)).toMatchObject({ data: { actionId: second, state: 'in_doubt' } })
      await assertInvariants(store)
    })

    test('it is in doubt again when somebody who had begun it could still do it [actions/no-blind-retry]', async () => {
      const { store, second } = await cancelledBetween(() => Promise.resolve({ kind: 'done', result: 'did a' }))
      const approved = (await store.read(findAction, second))!
      expect(await store.apply(doubtAgain, approved, 'a worker lives')).toMatchObject({ state: 'in_doubt' })
      await assertInvariants(store)
    })
  })

  test('an agent may be told that nobody knows, and go on; the doubt stays listed, and nothing is done again [actions/no-blind-retry]', async () => {
    const { stage, store } = await open()
    stage.policy = [{ decision: 'allow' }]
    stage.doubts = 'tell'
    stage.perform = () => Promise.reject(new Error('the connection was cut'))
    stage.replies = [{ calls: [['append', { entry: 'a' }]] }, { text: 'Then I do not know.' }]
    await stage.send('go')
    expect(await stage.finished(await stage.claim())).toMatchObject({ state: 'succeeded' })
    expect(toolResults(stage, 1)).toEqual([expect.stringContaining('unknown: it may or may not have happened')])
    const [doubt] = await store.read(openDoubts, 10)
    expect(doubt).toMatchObject({ state: 'in_doubt', input: { entry: 'a' } })
    // A person may still settle it, for the record.
    const settled = await store.apply(resolveDoubt, doubt!.id, { kind: 'happened', by: 'ann' })
    expect(settled).toMatchObject({ kind: 'resolved', action: { state: 'done' } })
    expect(stage.effects).toEqual([])
    await assertInvariants(store)
  })
})

describe('the policy', () => {
  const action = {
    tool: 'files_write',
    effect: 'write',
    agent: 'clerk',
    thread: 't1',
    input: { path: 'src/a.ts', n: 1 },
  } as const
  test.each([
    ['nothing matches: a write asks', [], 'ask'],
    ['deny wins over what is narrower', [{ decision: 'deny' }, { tool: 'files_write', decision: 'allow' }], 'deny'],
    [
      'the narrower wins',
      [
        { tool: 'files_write', decision: 'ask' },
        { tool: 'files_write', where: [{ argument: 'path', path: 'src/**' }], decision: 'allow' },
      ],
      'allow',
    ],
    [
      'as narrow: the one that asks',
      [
        { tool: 'files_write', decision: 'allow' },
        { tool: 'files_write', decision: 'ask' },
      ],
      'ask',
    ],
    ['of another agent', [{ agent: 'other', decision: 'allow' }], 'ask'],
    [
      'of this thread',
      [
        { thread: 't1', decision: 'allow' },
        { agent: 'clerk', decision: 'ask' },
      ],
      'allow',
    ],
    ['an argument that is another', [{ where: [{ argument: 'n', equals: 2 }], decision: 'allow' }], 'ask'],
    ['one of several', [{ where: [{ argument: 'n', oneOf: [1, 2] }], decision: 'allow' }], 'allow'],
    ['an argument that is not there', [{ where: [{ argument: 'to.name', equals: 1 }], decision: 'allow' }], 'ask'],
    [
      'what every object has is no argument',
      [{ where: [{ argument: 'constructor.name', equals: 'Object' }], decision: 'allow' }],
      'ask',
    ],
  ] as const)('%s', (_title, rules, kind) => {
    expect(judge(rules, action).kind).toBe(kind)
  })

  test.each(['../secret', 'src/../../secret', '/etc/passwd', 'src/../other/x', 'srcx/a'])(
    'a path that leaves: %s',
    (path) => {
      const rule = { where: [{ argument: 'path', path: 'src/**' }], decision: 'allow' } as const
      expect(judge([rule], { ...action, input: { path } }).kind).toBe('ask')
    },
  )

  test('words of a list are compared as words', () => {
    const rule = { where: [{ argument: 'argv', words: ['git', 'status'] }], decision: 'allow' } as const
    const of = (argv: unknown) => judge([rule], { ...action, input: { argv } }).kind
    expect([of(['git', 'status', '-s']), of(['git', 'push']), of('git status'), of(['git status'])]).toEqual([
      'allow',
      'ask',
      'ask',
      'ask',
    ])
  })
})
