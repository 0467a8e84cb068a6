import { describe, expect, test } from 'vitest'

import { newScheduleId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { removeSchedule } from '../../src/schedule/edit.ts'
import { addFollowup } from '../../src/schedule/followup.ts'
import { livingOf } from '../../src/schedule/job.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { anAgent, inARun, staged } from './agent-tools.ts'
import { START } from './support.ts'

const MINUTE = 60_000
const iso = (at: number) => new Date(at).toISOString()
const followup = (input: object) => ['schedule_followup', { prompt: 'look again', ...input }] as const
const OLD = { when: { delayMs: MINUTE }, prompt: 'look', madeBy: 'agent clerk' } as const
const REFUSED = [
  [{ delay_seconds: 59 }, '59 is out of bounds, from 60 to 86400'],
  [{ delay_seconds: 86_401 }, '86401 is out of bounds'],
  [{ delay_seconds: 90.5 }, 'must be a whole number'],
  [{}, 'either "delay_seconds" or "at" is needed'],
  [{ delay_seconds: 60, at: '2026-01-02T00:00:00Z' }, 'either "delay_seconds" or "at" is needed'],
  [{ at: '2025-12-31T00:00:00Z' }, 'has passed; now it is 2026-01-01T00:00:00.000Z'],
  [{ at: '2026-01-02T00:00:00' }, 'has no zone'],
  [{ at: '2026-02-30T00:00:00Z' }, 'is no date with a time'],
  [{ at: 'tomorrow' }, 'is no date with a time'],
  [{ at: '2036-01-01T00:00:00Z' }, 'more than a year ahead'],
  [{ delay_seconds: 60, prompt: ' ' }, 'prompt: is empty'],
  [{ delay_seconds: 60, prompt: undefined }, 'prompt'],
  [{ delay_seconds: 60, thread: 'another' }, 'thread'],
] as const
interface Followup {
  readonly id: string
  readonly due: string
  readonly replaced?: Followup
}

describe.each(engines)('follow-ups of an agent on $name', (engine) => {
  const pending = ({ world }: Awaited<ReturnType<typeof anAgent>>) =>
    world.store.read(livingOf, world.thread, 'followup', 100)

  test('it comes when it is due, as a turn of the same thread that begins with which, when, how late and why', async () => {
    const { world, stage } = await anAgent(engine)
    const [told] = await inARun(stage, [followup({ delay_seconds: 60, reason: 'the build\ntakes a while' })])
    const { id, due } = told as Followup
    expect(due).toBe(iso(START + MINUTE))
    expect(await world.pass(MINUTE - 1)).toBe(0)
    expect(await world.pass(5_001)).toBe(1)
    stage.replies = [...stage.replies, { text: 'I looked.' }]
    await stage.finished(await stage.claim())
    expect(stage.asked.at(-1)?.messages.at(-1)).toEqual({
      role: 'user',
      text: `[follow-up ${id}; asked for at ${iso(START)}; due at ${due}, 5s late; because: the build takes a while]\nlook again`,
    })
    expect(await world.pass(86_400_000)).toBe(0)
    expect(await world.reread(id as never)).toMatchObject({
      state: 'ended',
      ownerThread: world.thread,
      ownerAgent: 'clerk',
      madeBy: 'agent clerk',
    })
    await assertInvariants(world.store)
  })

  test('a second one of a run takes the place of the first and says so; another run adds one', async () => {
    const { world, stage } = await anAgent(engine)
    const [first, second] = (await inARun(stage, [
      followup({ delay_seconds: 60, prompt: 'soon' }),
      followup({ at: '2026-01-01T02:00:00+01:00', prompt: 'later' }),
    ])) as Followup[]
    expect(second).toMatchObject({ due: iso(START + 60 * MINUTE), replaced: { id: first!.id, prompt: 'soon' } })
    const [third] = (await inARun(stage, [followup({ delay_seconds: 86_400 })])) as Followup[]
    expect(third).not.toHaveProperty('replaced')
    expect((await pending({ world, stage })).map(({ id }) => id)).toEqual([second!.id, third!.id])
    const [listed] = await inARun(stage, [['list_followups', {}]])
    expect(listed).toMatchObject([{ id: second!.id, prompt: 'later' }, { id: third!.id }])
    await assertInvariants(world.store)
  })

  test('what is out of bounds or makes no sense is refused in words, not clamped', async () => {
    const { world, stage } = await anAgent(engine)
    const told = await inARun(
      stage,
      REFUSED.map(([input]) => followup(input)),
    )
    expect(told.map((words, index) => [words, String(words).includes(REFUSED[index]![1])])).toEqual(
      told.map((words) => [words, true]),
    )
    expect(await pending({ world, stage })).toEqual([])
  })

  test('no more than 25 wait at a time, and no more than 100 are asked for in a day', async () => {
    const { world, stage } = await anAgent(engine)
    const ask = async () => (await inARun(stage, [followup({ delay_seconds: 600 })]))[0]
    const add = (count: number) =>
      Promise.all(
        Array.from({ length: count }, async () => {
          const id = newScheduleId(random)
          const owner = { threadId: world.thread }
          await world.store.apply(addFollowup, { ...OLD, id, threadId: world.thread, owner })
          return id
        }),
      )
    await add(LIMITS.followupsPending - 1)
    expect(await ask()).toHaveProperty('id')
    expect(await ask()).toContain('25 follow-ups of this conversation are pending already')
    await world.pass(600_000)
    stage.replies = [...stage.replies, { text: 'I looked.' }]
    await stage.finished(await stage.claim())
    const more = await add(LIMITS.followupsADay - LIMITS.followupsPending)
    await Promise.all(more.map((id) => world.store.apply(removeSchedule, id, 'ada')))
    expect(await ask()).toContain('100 follow-ups within 1d, and that is the limit')
    await world.pass(86_400_000)
    expect(await ask()).toHaveProperty('id')
  })

  test('one is cancelled by the thread that asked for it, and by no other', async () => {
    const { world, stage } = await anAgent(engine)
    const [asked] = (await inARun(stage, [followup({ delay_seconds: 60 })])) as Followup[]
    const other = staged(world)
    other.threadId = 'another' as ThreadId
    const cancel = (id: string) => ['cancel_followup', { id }] as const
    expect(await inARun(other, [cancel(asked!.id), ['list_followups', {}]])).toEqual([
      `failed: this conversation has no follow-up ${asked!.id}; list_followups shows those it has`,
      [],
    ])
    expect((await inARun(stage, [cancel('sch_nothing')]))[0]).toContain('has no follow-up sch_nothing')
    expect((await inARun(stage, [cancel(asked!.id)]))[0]).toMatchObject({ cancelled: { id: asked!.id } })
    expect((await inARun(stage, [cancel(asked!.id)]))[0]).toContain('it is over: cancelled by agent clerk')
    expect(await world.pass(86_400_000)).toBe(0)
    await assertInvariants(world.store)
  })

  test('what has come already is not cancelled', async () => {
    const { world, stage } = await anAgent(engine)
    const [asked] = (await inARun(stage, [followup({ delay_seconds: 60 })])) as Followup[]
    await world.pass(MINUTE)
    stage.replies = [...stage.replies, { calls: [['cancel_followup', { id: asked!.id }]] }, { text: 'too late' }]
    await stage.finished(await stage.claim())
    expect(stage.asked.at(-1)?.messages.at(-1)).toMatchObject({ text: `failed: ${asked!.id} has come already` })
  })
})
