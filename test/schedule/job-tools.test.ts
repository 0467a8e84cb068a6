import { describe, expect, test } from 'vitest'

import { decideApproval } from '../../src/actions/decide.ts'
import { pendingApprovals } from '../../src/actions/approval.ts'
import { editApproval } from '../../src/actions/edit.ts'
import { newActionId, newScheduleId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { checkEdit } from '../../src/loop/reply.ts'
import { addJob, livingOf } from '../../src/schedule/job.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { anAgent, inARun, staged } from './agent-tools.ts'
import { START } from './support.ts'

const MINUTE = 60_000
/** As a model would write it: what is undefined is not there. */
const create = (name: string, input: object = {}): readonly [string, unknown] => {
  const written = { action: 'create', name, every: '10m', prompt: 'look around', ...input }
  return ['manage_jobs', JSON.parse(JSON.stringify(written)) as unknown]
}
const act = (action: string, name?: string) =>
  ['manage_jobs', { action, ...(name === undefined ? {} : { name }) }] as const

describe.each(engines)('jobs of an agent on $name', (engine) => {
  const living = ({ world }: Awaited<ReturnType<typeof anAgent>>) =>
    world.store.read(livingOf, world.thread, 'job', 100)

  test('several are created in one turn; each remembers its thread, its run and its agent', async () => {
    const { world, stage } = await anAgent(engine)
    const told = await inARun(stage, [
      create('rounds', { reason: 'it changes' }),
      create('morning', { every: undefined, cron: '30 9 * * 1-5', zone: 'Europe/Berlin', agent: 'helper' }),
      create('once', { every: undefined, at: '2026-01-01T01:00:00Z', prompt: undefined, command: ['true'] }),
    ])
    expect(told).toMatchObject([
      { name: 'rounds', when: 'every 10m', prompt: 'look around', state: 'active', next: '2026-01-01T00:10:00.000Z' },
      { name: 'morning', when: 'cron "30 9 * * 1-5" in Europe/Berlin', agent: 'helper' },
      { name: 'once', command: ['true'], next: '2026-01-01T01:00:00.000Z' },
    ])
    const jobs = await living({ world, stage })
    const { runId } = (await stage.store.read(messagesOf, world.thread)).map((m) => ({ runId: m.consumedByRun }))[0]!
    expect(jobs.map(({ ownerThread, ownerRun, ownerAgent }) => [ownerThread, ownerRun, ownerAgent])).toEqual(
      jobs.map(() => [world.thread, runId, 'clerk']),
    )
    // What a command gets is harmless, however rich the environment of its agent is.
    expect(jobs.find(({ name }) => name === 'once')?.target).toEqual({
      kind: 'command',
      argv: ['true'],
      cwd: '/desk',
      env: { PATH: '/bin' },
    })
    await assertInvariants(world.store)
  })

  test('it comes as a turn of the thread that asked for it, again and again, and its failures are told there [F5]', async () => {
    const { world, stage } = await anAgent(engine)
    await inARun(stage, [create('rounds'), create('lost', { every: '10m', agent: 'helper' })])
    await world.pass(10 * MINUTE)
    stage.replies = [...stage.replies, { text: 'I looked.' }]
    await stage.finished(await stage.claim())
    const shown = stage.asked.at(-1)?.messages.map(({ text }) => text) ?? []
    expect(shown.some((text) => text.startsWith('[scheduled job rounds; asked for at'))).toBe(true)
    // Nobody is the agent helper: the firing is dropped, and its owner told so in the same turn.
    expect(shown.join('\n')).toContain('no daemon has the agent helper')
    const [listed] = (await inARun(stage, [act('list')])) as { name: string }[][]
    expect(listed!.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toMatchObject([
      { name: 'lost', last: { state: 'dropped' } },
      { name: 'rounds', last: { state: 'succeeded' } },
    ])
    await assertInvariants(world.store)
  })

  test('a name that a job has is not given to another one: refused, with what is there', async () => {
    const { world, stage } = await anAgent(engine)
    const [first] = (await inARun(stage, [create('rounds')])) as { id: string }[]
    const other = staged(world)
    other.threadId = 'another' as ThreadId
    for (const who of [stage, other]) {
      const [told] = await inARun(who, [create('rounds', { every: '1h' })])
      expect(told).toContain(
        `the name rounds is taken, and nothing was changed: it is ${first!.id}, every 10m, active, made by agent clerk`,
      )
    }
    expect(await living({ world, stage })).toMatchObject([{ id: first!.id, rule: { everyMs: 10 * MINUTE } }])
    expect(await inARun(other, [act('cancel', 'rounds'), act('pause', first!.id), act('list')])).toEqual([
      'failed: this conversation has no job rounds; action "list" shows those it has',
      `failed: this conversation has no job ${first!.id}; action "list" shows those it has`,
      [],
    ])
  })

  test('it is paused, resumed and cancelled, and says so', async () => {
    const { world, stage } = await anAgent(engine)
    await inARun(stage, [create('rounds')])
    expect(await inARun(stage, [act('pause', 'rounds')])).toMatchObject([{ state: 'paused' }])
    expect(await world.pass(30 * MINUTE)).toBe(0)
    expect(await inARun(stage, [act('resume', 'rounds')])).toMatchObject([
      { state: 'active', next: new Date(START + 40 * MINUTE).toISOString() },
    ])
    expect(await inARun(stage, [act('cancel', 'rounds')])).toMatchObject([{ cancelled: 'rounds' }])
    expect(await world.pass(86_400_000)).toBe(0)
    expect(await inARun(stage, [act('resume', 'rounds')])).toEqual([
      expect.stringContaining('rounds: it is over: cancelled by agent clerk'),
    ])
    // The name is free again.
    expect(await inARun(stage, [create('rounds')])).toMatchObject([{ state: 'active' }])
    await assertInvariants(world.store)
  })

  test('listing is a read and asks nobody; each creation asks for itself, and one no is no answer for the other', async () => {
    const { world, stage } = await anAgent(engine)
    stage.policy = []
    stage.replies = [{ calls: [act('list'), create('one'), create('two')] }, { text: 'done' }]
    await stage.send('go')
    const claim = await stage.claim()
    expect(await stage.run(claim)).toEqual({ kind: 'left' })
    const actions = await stage.actions(claim)
    expect(actions.map(({ effect, state }) => [effect, state])).toEqual([
      ['read', 'done'],
      ['write', 'waiting'],
      ['write', 'waiting'],
    ])
    const asked = await world.store.read(pendingApprovals, 10)
    expect(asked).toHaveLength(2)
    for (const { id, digest, actionId } of asked) {
      const kind = actionId === actions[1]!.id ? 'deny' : 'approve'
      await world.store.apply(decideApproval, id, { kind, by: 'ada', via: 'test', digest })
    }
    await stage.finished(await stage.claim())
    expect((await stage.actions(claim)).map(({ state }) => state)).toEqual(['done', 'denied', 'done'])
    expect((await living({ world, stage })).map(({ name }) => name)).toEqual(['two'])
    await assertInvariants(world.store)
  })

  test('a person who makes a creation of a listing approves a write', async () => {
    const { world, stage } = await anAgent(engine)
    stage.policy = [{ decision: 'ask' }]
    stage.replies = [{ calls: [act('list')] }, { text: 'done' }]
    await stage.send('go')
    const claim = await stage.claim()
    await stage.run(claim)
    const [asked] = await world.store.read(pendingApprovals, 10)
    const tool = stage.extra.find(({ name }) => name === 'manage_jobs')!
    const checked = checkEdit(tool, create('edited')[1])
    if ('wrong' in checked) throw new Error(checked.wrong)
    const action = { id: newActionId(random), mark: random.hex(15), ...checked }
    const who = { by: 'ada', via: 'test' }
    await world.store.apply(editApproval, asked!.id, { ...who, digest: asked!.digest, action })
    const [again] = await world.store.read(pendingApprovals, 10)
    await world.store.apply(decideApproval, again!.id, { ...who, kind: 'approve', digest: again!.digest })
    await stage.finished(await stage.claim())
    expect((await stage.actions(claim)).map(({ effect, state }) => [effect, state])).toEqual([
      ['read', 'skipped'],
      ['write', 'done'],
    ])
    expect((await living({ world, stage })).map(({ name }) => name)).toEqual(['edited'])
  })

  test('a thread has 20 jobs at most; what is too often or makes no sense is refused', async () => {
    const { world, stage } = await anAgent(engine)
    const owner = { threadId: world.thread, runId: 'run_x' as never, agent: 'clerk' }
    const limits = { jobs: LIMITS.jobsAThread, depth: 4 }
    const common = { target: { kind: 'self', text: 'x' }, options: {}, owner, madeBy: 'agent clerk', limits } as const
    const rule = { kind: 'every', everyMs: 10 * MINUTE } as const
    const add = (name: string) => world.store.apply(addJob, { ...common, id: newScheduleId(random), name, rule })
    // At the same time: of two that count, one sees the other.
    const added = await Promise.all(Array.from({ length: LIMITS.jobsAThread + 3 }, (_, n) => add(`job-${n}`)))
    expect(added.filter(({ kind }) => kind === 'added')).toHaveLength(LIMITS.jobsAThread)
    const told = await inARun(
      stage,
      REFUSED.map(([input]) => create('more', input)),
    )
    expect(told.map((words, index) => [words, String(words).includes(REFUSED[index]![1])])).toEqual(
      told.map((words) => [words, true]),
    )
    expect(await living({ world, stage })).toHaveLength(LIMITS.jobsAThread)
  })
})

const REFUSED = [
  [{}, 'this conversation has 20 jobs already'],
  [{ every: '59s' }, 'is too often, 1m at least'],
  [{ every: 'often' }, '"often" is not a duration'],
  [{ every: undefined }, 'one of "every", "cron" and "at" is needed'],
  [{ cron: '* * * * *' }, 'one of "every", "cron" and "at" is needed'],
  [{ every: undefined, cron: '* * * * * *' }, 'once a minute at most'],
  [{ every: undefined, cron: '61 * * * *' }, 'is no cron expression'],
  [{ every: undefined, cron: '0 9 * * *', zone: 'Mars/Olympus' }, 'is no time zone'],
  [{ every: undefined, at: '2025-01-01T00:00:00Z' }, 'has passed'],
  [{ agent: 'stranger' }, 'agent: must be "helper"'],
  [{ command: ['true'] }, '"prompt"'],
  [{ name: 'sch_1' }, 'is no name for a schedule'],
  [{ thread: 'another' }, 'thread'],
] as const
