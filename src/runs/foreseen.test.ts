import { expect, test, vi } from 'vitest'

import { Rounds } from '../store/rounds.ts'
import type { AnyChange } from '../store/rounds.ts'
import type { Ask, Course } from '../store/transition.ts'
import type { AttemptId, RunId, ThreadId, WorkerId } from '../base/ids.ts'
import { callAll, callHere, callOne } from './call.ts'
import type { NewCall } from './call.ts'
import { finishCall } from './finish-call.ts'
import type { FinishedCall } from './finish-call.ts'
import type { Outcome } from './finish.ts'
import { advanceRun } from './step.ts'
import type { StepOutcome } from './step.ts'

/*
 * What a change is likely to be is written down twice: as the transition, and in short. Here both are asked the same.
 */

const ref = { id: 'att_1' as AttemptId, runId: 'run_1' as RunId, runSeq: 7, fence: 3 }
const call: FinishedCall = {
  agent: 'adder',
  threadId: 'calls:adder' as ThreadId,
  request: { kind: 'agent' },
  attempt: 1,
}
const succeeded: Outcome = { state: 'succeeded', result: { sum: 3 } }
const done: StepOutcome = {
  name: 's',
  effect: 'write',
  tries: 1,
  state: 'done',
  result: '1',
  error: null,
  by: null,
}

function asked<Args extends readonly unknown[], T>(change: Course<Args, T>, args: Args) {
  const rounds = new Rounds(true)
  rounds.add(change as unknown as AnyChange, args)
  // Nothing is waited for.
  expect(rounds.next()).toBeUndefined()
  const { telling, silent } = rounds.takeAhead()
  rounds.hear(
    telling,
    telling.map((_, at) => ({ rows: [{ seq: at, fence: 1, state: 'running' }], changes: 1 })),
  )
  const { deferred, topics } = rounds
  const told = telling.map(({ given }) => given)
  return { told, silent: [...silent], deferred: [...deferred], topics: [...topics], values: rounds.values() }
}

function expectTheSame<Args extends readonly unknown[], T>(change: Course<Args, T>, ...args: Args): void {
  const foreseen = asked(change, args)
  expect(change.foresee!({ rows: () => [], row: <Late>() => ({}) as Late, tell: () => {} }, ...args)).toBeDefined()
  expect(foreseen).toEqual(asked((...given: Args) => change(...given), args))
  expect(foreseen.silent.length).toBeGreaterThan(0)
}

function expectNothing<Args extends readonly unknown[], T>(change: Course<Args, T>, ...args: Args): void {
  const ask = { rows: vi.fn<Ask['rows']>(), row: vi.fn<() => never>(), tell: vi.fn<Ask['tell']>() }
  expect(change.foresee!(ask, ...args)).toBeUndefined()
  expect(ask.rows).not.toHaveBeenCalled()
  expect(ask.row).not.toHaveBeenCalled()
  expect(ask.tell).not.toHaveBeenCalled()
}

const outcomes: Readonly<Record<string, readonly StepOutcome[]>> = {
  'nothing before it': [],
  'a write that is done': [done],
  'what it came to cannot be kept': [{ ...done, result: null, error: 'not JSON' }],
  'a probe said so': [{ ...done, by: 'its probe' }],
  'a write that is known not to have happened': [
    { ...done, state: 'failed', result: null, error: 'no', by: 'its probe' },
  ],
  'a read': [{ ...done, effect: 'read' }],
  'a read that failed': [{ ...done, effect: 'read', state: 'failed', result: null, error: 'no' }],
  'several, of a second try too': [done, { ...done, name: 't', tries: 2 }, { ...done, effect: 'read', name: 'u' }],
}

test.each(Object.entries(outcomes))('a step begins after %s: the same statements, foreseen or not', (_, steps) => {
  expectTheSame(advanceRun, ref, steps, 'next')
  if (steps.length > 0) expectTheSame(advanceRun, ref, steps)
})

test.each(Object.entries(outcomes))('a call ends with %s: the same statements, foreseen or not', (_, steps) => {
  expectTheSame(finishCall, ref, call, succeeded, steps)
  expectTheSame(finishCall, ref, call, { state: 'succeeded' }, steps)
})

const unusual: Readonly<Record<string, StepOutcome>> = {
  'nobody knows whether it happened': { ...done, state: 'in_doubt', result: null, error: 'cut off', by: 'nobody' },
  'a person was asked about it': { ...done, listed: true },
}

test.each(Object.entries(unusual))('nothing is foreseen, and nothing asked, where %s', (_, step) => {
  expectNothing(advanceRun, ref, [done, step], 'next')
  expectNothing(finishCall, ref, call, succeeded, [done, step])
})

const otherEnds: Readonly<Record<string, readonly [call: Partial<FinishedCall>, outcome: Outcome]>> = {
  'a failure': [{}, { state: 'failed', code: 'tool', error: 'no' }],
  'a cancel': [{}, { state: 'cancelled' }],
  'an end for which a schedule waits': [{ request: { kind: 'agent', scheduled: true } }, succeeded],
  'a second attempt': [{ attempt: 2 }, succeeded],
  'an end that gives capacity back': [{ slots: ['one'] }, succeeded],
  'an end with actions of a loop': [{ hasActions: true }, succeeded],
  'an end with a bill': [{}, { ...succeeded, usage: {} as NonNullable<Outcome['usage']> }],
}

test.each(Object.entries(otherEnds))('nothing is foreseen, and nothing asked, of %s', (_, [ended, outcome]) => {
  expectNothing(finishCall, ref, { ...call, ...ended }, outcome, [done])
})

const newCall: NewCall = { id: 'run_1' as RunId, agent: 'adder', input: '3' }
const place = { workerId: 'wrk_1' as WorkerId, leaseMs: 15_000, attemptId: 'att_1' as AttemptId }

const calls: Readonly<Record<string, Partial<NewCall>>> = {
  'as most are': {},
  'with a priority and a time of its own': { priority: 3, timeoutMs: 1_000 },
  'for which a schedule waits': { scheduled: true },
  'on a thread of its own': { threadId: 'mine' as ThreadId },
}

test.each(Object.entries(calls))('a call %s: the same statements, foreseen or not', (_, more) => {
  const given = { ...newCall, ...more }
  expectTheSame(callOne, given)
  expectTheSame(callAll, [given, { ...newCall, id: 'run_2' as RunId }])
  expectTheSame(callHere, given, place)
  expectTheSame(callHere, given, place, ['first', 'second'])
})

test('nothing is foreseen, and nothing asked, of a call that may be known', () => {
  const keyed = { ...newCall, key: 'order-7' }
  expectNothing(callOne, keyed)
  expectNothing(callAll, [newCall, keyed])
  expectNothing(callHere, keyed, place)
})
