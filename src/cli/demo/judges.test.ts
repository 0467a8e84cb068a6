import { describe, expect, test } from 'vitest'

import { inDoubt } from './in-doubt.ts'
import type { InDoubtFacts } from './in-doubt.ts'
import { killed } from './killed.ts'
import type { KilledFacts } from './killed.ts'
import { rateLimit } from './rate-limit.ts'
import type { RateLimitFacts } from './rate-limit.ts'
import { stubborn } from './stubborn.ts'
import type { StubbornFacts } from './stubborn.ts'
import type { Act } from './act.ts'

const KILLED: KilledFacts = {
  ledgerAtKill: 'one act_1\ntw',
  ledgerWithoutDaemon: ['one', 'two'],
  ledger: ['one', 'two', 'three'],
  runId: 'run_1',
  state: 'succeeded',
  attempts: 2,
  settledBy: ['its tool', 'what its process left behind', 'its tool'],
  modelCalls: 2,
}

const IN_DOUBT: InDoubtFacts = {
  supervisorsKilled: 2,
  payments: ['power', 'rent'],
  doubts: ['rent'],
  rent: { runId: 'run_2', state: 'done', settledBy: 'ann (process 7): it is in payments.txt' },
  power: { runId: 'run_3', state: 'done', settledBy: 'its probe' },
}

const RATE_LIMIT: RateLimitFacts = {
  runId: 'run_4',
  state: 'succeeded',
  toldMs: 2_000,
  waitedMs: 2_100,
  modelCalls: 2,
}

const STUBBORN: StubbornFacts = { runId: 'run_5', before: 3, sessions: 2, after: 0, state: 'cancelled' }

const failed = <Facts>(act: Act<Facts>, facts: Facts) =>
  act
    .judge(facts)
    .filter(({ ok }) => !ok)
    .map(({ what }) => what)

describe('the demo believes nothing', () => {
  test('what it should see is accepted', () => {
    expect(failed(killed, KILLED)).toEqual([])
    expect(failed(inDoubt, IN_DOUBT)).toEqual([])
    expect(failed(rateLimit, RATE_LIMIT)).toEqual([])
    expect(failed(stubborn, STUBBORN)).toEqual([])
  })

  test.each<[string, Partial<KilledFacts>]>([
    ['an entry twice', { ledger: ['one', 'two', 'two', 'three'] }],
    ['an entry that is missing', { ledger: ['one', 'three'] }],
    ['entries in another order', { ledger: ['two', 'one', 'three'] }],
    ['half an entry', { ledger: ['one', 'tw', 'three'] }],
    ['a kill that came too late', { ledgerAtKill: 'one act_1\ntwo act_2\n' }],
    ['a second write that was performed anew', { settledBy: ['its tool', 'its tool', 'its tool'] }],
    ['a second write that only the next daemon made', { ledgerWithoutDaemon: ['one'] }],
    ['a run that failed', { state: 'failed' }],
    ['a run that nobody took over', { attempts: 1 }],
    ['a model that was asked again', { modelCalls: 3 }],
  ])('killed: %s is noticed', (_, wrong) => {
    expect(failed(killed, { ...KILLED, ...wrong })).toHaveLength(1)
  })

  test.each<[string, Partial<InDoubtFacts>]>([
    ['a payment twice', { payments: ['power', 'rent', 'rent'] }],
    ['a supervisor that was left alive', { supervisorsKilled: 1 }],
    ['a doubt that nobody was told of', { doubts: [] }],
    ['a doubt that was settled by nobody', { rent: { ...IN_DOUBT.rent, settledBy: 'its tool' } }],
    ['a probe that was not asked', { power: { ...IN_DOUBT.power, settledBy: 'its tool' } }],
  ])('in doubt: %s is noticed', (_, wrong) => {
    expect(failed(inDoubt, { ...IN_DOUBT, ...wrong })).toHaveLength(1)
  })

  test.each<[string, Partial<RateLimitFacts>]>([
    ['a call before its time', { waitedMs: 1_999 }],
    ['a call too many', { modelCalls: 3 }],
    ['no answer', { state: 'failed' }],
  ])('rate limit: %s is noticed', (_, wrong) => {
    expect(failed(rateLimit, { ...RATE_LIMIT, ...wrong })).toHaveLength(1)
  })

  test.each<[string, Partial<StubbornFacts>]>([
    ['a process that is left', { after: 1 }],
    ['a tool that was not stubborn', { before: 1 }],
    ['everything in one session', { sessions: 1 }],
    ['a run that is not cancelled', { state: 'failed' }],
  ])('stubborn: %s is noticed', (_, wrong) => {
    expect(failed(stubborn, { ...STUBBORN, ...wrong })).toHaveLength(1)
  })
})
