import fc from 'fast-check'
import { expect, test } from 'vitest'

import type { ScheduleId } from '../base/ids.ts'
import { planFiring } from './plan.ts'
import type { Plan } from './plan.ts'
import { nextAfter } from './rule.ts'
import type { Rule } from './rule.ts'
import { DEFAULT_OPTIONS, jitterOf } from './schedule.ts'
import type { Misfire, Schedule, ScheduleOptions } from './schedule.ts'

const MINUTE = 60_000
const every: Rule = { kind: 'every', everyMs: MINUTE, anchor: MINUTE }

const schedule = (rule: Rule, nextAt: number, options: Partial<ScheduleOptions> = {}, firings = 0): Schedule => ({
  id: 'sch_1' as ScheduleId,
  name: 'job',
  kind: 'job',
  state: 'active',
  reason: null,
  rule,
  target: { kind: 'agent', agent: 'clerk', text: '' },
  options: { ...DEFAULT_OPTIONS, ...options },
  targetThread: null,
  ownerThread: null,
  ownerRun: null,
  ownerAgent: null,
  madeBy: 'ada',
  nextAt,
  nextFireAt: nextAt + jitterOf('sch_1' as ScheduleId, nextAt, options.jitterMs ?? 0),
  failures: 0,
  firings,
  version: 1,
  createdAt: 0,
  updatedAt: 0,
  endedAt: null,
})

const planned = (nowMinutes: number, options: Partial<ScheduleOptions> = {}, firings = 0) =>
  planFiring(schedule(every, MINUTE, options, firings), nowMinutes * MINUTE)
const fired = ({ fire }: Plan) => fire.map(({ dueAt, origin }) => `${dueAt / MINUTE} ${origin}`)
const passed = ({ passedOver }: Plan) =>
  passedOver.map(({ from, to, instants }) => [from / MINUTE, to / MINUTE, instants])

test('on time: it fires, and the next one lies ahead', () => {
  const plan = planned(1)
  expect([fired(plan), passed(plan), plan.next]).toEqual([['1 due'], [], 2 * MINUTE])
})

test('missed, to fire once: the last one fires and stands for the others', () => {
  const plan = planned(5.5)
  expect([fired(plan), passed(plan), plan.next]).toEqual([['5 due'], [[1, 4, 4]], 6 * MINUTE])
  expect(plan.passedOver[0]?.reason).toBe('missed: 1970-01-01T00:05:00.000Z stands for it')
  expect(planned(5.5, { graceMs: 1_000 }).fire).toEqual([{ dueAt: 5 * MINUTE, lateMs: 30_000, origin: 'catch_up' }])
})

test('missed, to be skipped: what is within its grace still fires', () => {
  const misfire: Misfire = { policy: 'skip' }
  const inTime = planned(5.5, { misfire, graceMs: 30_000 })
  expect([fired(inTime), passed(inTime)]).toEqual([['5 due'], [[1, 4, 4]]])
  const late = planned(5.5, { misfire, graceMs: 29_999 })
  expect([fired(late), passed(late), late.next]).toEqual([[], [[1, 5, 5]], 6 * MINUTE])
  expect(late.passedOver[0]?.reason).toMatch(/nobody was there/)
})

test('missed, to fire each: the last so many fire, the others are passed over', () => {
  const plan = planned(5.5, { misfire: { policy: 'each', limit: 3 } })
  expect([fired(plan), passed(plan)]).toEqual([['3 catch_up', '4 catch_up', '5 catch_up'], [[1, 2, 2]]])
  const few = planned(2, { misfire: { policy: 'each', limit: 3 } })
  expect([fired(few), passed(few)]).toEqual([['1 catch_up', '2 catch_up'], []])
})

test('after its end none counts: not those that would have come while nobody looked', () => {
  const plan = planned(60, { until: 3 * MINUTE })
  expect([fired(plan), passed(plan), plan.next]).toEqual([['3 catch_up'], [[1, 2, 2]], undefined])
  expect(planned(3, { until: 3 * MINUTE }).next).toBeUndefined()
})

test('no more fire than it may, however many were missed', () => {
  const plan = planned(9, { misfire: { policy: 'each', limit: 5 }, maxFirings: 7 }, 5)
  expect(fired(plan)).toEqual(['5 catch_up', '6 catch_up'])
})

test('an instant whose jitter has not passed is still ahead', () => {
  const jitterMs = 50_000
  const jitter = jitterOf('sch_1' as ScheduleId, 2 * MINUTE, jitterMs)
  expect(jitter).toBeGreaterThan(0)
  const before = planFiring(schedule(every, MINUTE, { jitterMs }), 2 * MINUTE + jitter - 1)
  expect([fired(before), before.next]).toEqual([['1 due'], 2 * MINUTE])
  const after = planFiring(schedule(every, MINUTE, { jitterMs }), 2 * MINUTE + jitter)
  expect([fired(after), passed(after)]).toEqual([['2 due'], [[1, 1, 1]]])
  expect(after.fire[0]?.lateMs).toBe(0)
})

test('what comes once fires once, however late, or is passed over', () => {
  const once: Rule = { kind: 'once', at: MINUTE }
  const late = planFiring(schedule(once, MINUTE), 90 * MINUTE)
  expect([fired(late), passed(late), late.next]).toEqual([['1 catch_up'], [], undefined])
  const skipped = planFiring(schedule(once, MINUTE, { misfire: { policy: 'skip' } }), 90 * MINUTE)
  expect([fired(skipped), passed(skipped)]).toEqual([[], [[1, 1, 1]]])
})

const START = Date.UTC(2026, 2, 28)
const anyRule: fc.Arbitrary<Rule> = fc.oneof(
  fc.integer({ min: 0, max: 86_400_000 }).map((ms): Rule => ({ kind: 'once', at: START + ms })),
  fc
    .tuple(fc.integer({ min: 10_000, max: 7_200_000 }), fc.integer({ min: -1e7, max: 1e7 }))
    .map(([everyMs, offset]): Rule => ({ kind: 'every', everyMs, anchor: START + offset })),
  fc
    .tuple(
      fc.constantFrom('*/7 * * * *', '30 2 * * *', '0 * * * *', '15,45 1-3 * * *', '*/40 * * * * *'),
      fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe'),
    )
    .map(([expression, zone]): Rule => ({ kind: 'cron', expression, zone })),
)
const anyOptions: fc.Arbitrary<Partial<ScheduleOptions>> = fc.record({
  misfire: fc.oneof(
    fc.constant<Misfire>({ policy: 'once' }),
    fc.constant<Misfire>({ policy: 'skip' }),
    fc.integer({ min: 1, max: 4 }).map((limit): Misfire => ({ policy: 'each', limit })),
  ),
  graceMs: fc.constantFrom(0, 1_000, 60_000),
  jitterMs: fc.constantFrom(0, 0, 500, 90_000),
})
/** How long until somebody looks again; some of them back in time, as a clock that is set. */
const anyLooks = fc.array(fc.oneof(fc.integer({ min: -60_000, max: 60_000 }), fc.integer({ min: 0, max: 6_000_000 })), {
  minLength: 1,
  maxLength: 8,
})

/** Every instant that these looks account for, in the order in which they were. */
function accountFor(rule: Rule, options: Partial<ScheduleOptions>, looks: readonly number[]) {
  let [now, nextAt] = [START, rule.kind === 'once' ? rule.at : nextAfter(rule, START)]
  const first = nextAt
  const lines: { from: number; to: number; instants: number }[] = []
  for (const ms of looks) {
    now += ms
    if (nextAt === undefined) break
    const at = schedule(rule, nextAt, options)
    if ((at.nextFireAt ?? 0) > now) continue
    const plan = planFiring(at, now)
    expect(plan.fire.length).toBeLessThanOrEqual(options.misfire?.policy === 'each' ? options.misfire.limit : 1)
    expect(plan.fire.every(({ dueAt, lateMs }) => dueAt <= now && lateMs >= 0)).toBe(true)
    lines.push(...plan.passedOver, ...plan.fire.map(({ dueAt }) => ({ from: dueAt, to: dueAt, instants: 1 })))
    nextAt = plan.next
    const { nextFireAt } = schedule(rule, nextAt ?? now + 1, options)
    expect(nextFireAt).toBeGreaterThan(now)
  }
  return { first, nextAt, lines }
}

test('for any rule and any looks every instant is in exactly one line, none twice, and the next lies ahead [schedule/every-firing-accounted]', () => {
  fc.assert(
    fc.property(anyRule, anyOptions, anyLooks, (rule, options, looks) => {
      const { first, nextAt, lines } = accountFor(rule, options, looks)
      let expected = first
      for (const { from, to, instants } of lines) {
        expect(from).toBe(expected)
        let count = 1
        for (let at = from; at !== to; count += 1) at = nextAfter(rule, at) ?? to
        expect(count).toBe(instants)
        expected = nextAfter(rule, to)
      }
      expect(nextAt).toBe(expected)
    }),
    { numRuns: 100 },
  )
})
