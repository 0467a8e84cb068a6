import * as fc from 'fast-check'

import type { AttemptId, RunId, ThreadId, WorkerId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { recordStarting, renewLeases } from '../../src/runs/attempt.ts'
import type { AttemptRef } from '../../src/runs/attempt.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import type { CapacityLimits } from '../../src/runs/capacity.ts'
import { claimRun } from '../../src/runs/claim.ts'
import type { Claim } from '../../src/runs/claim.ts'
import { finishRun, keepLateResult } from '../../src/runs/finish.ts'
import type { Outcome } from '../../src/runs/finish.ts'
import { parkRun, resumeRun } from '../../src/runs/park.ts'
import {
  abandonReserved,
  disownRun,
  expireQueued,
  handOverRun,
  heldAttempts,
  requeueRun,
  takeOverRun,
} from '../../src/runs/recover.ts'
import type { TakeoverGround } from '../../src/runs/recover.ts'
import type { RunRequest } from '../../src/runs/run.ts'
import { submitRun } from '../../src/runs/submit.ts'
import { registerWorker, stopWorker } from '../../src/runs/worker.ts'
import type { Store } from '../../src/store/store.ts'
import { openThread } from '../../src/threads/thread.ts'
import { LEASE_MS, someIdentity } from '../support/world.ts'

/** One step of a random history: what to do, and numbers that choose to whom. */
export interface Step {
  readonly kind: keyof typeof STEPS
  readonly who: number
  readonly how: number
}

/** What the steps of one history have made so far. */
export interface History {
  readonly ids: () => number
  readonly runs: RunId[]
  readonly attempts: (AttemptRef & { mark: string })[]
}

export type Act = (store: Store) => Promise<unknown>
/** Undefined when there is nobody yet to do it to. */
type Make = (history: History, step: { readonly who: number; readonly how: number }) => Act | undefined

const pick = <T>(list: readonly T[], at: number): T | undefined => list[at % Math.max(list.length, 1)]
const AGENTS = ['helper', 'other'] as const
const GROUNDS: readonly TakeoverGround[] = ['owner-dead', 'lease-over', 'released']
const CAPACITIES: readonly CapacityLimits[] = [{}, { total: 2 }, { eachAgent: 1 }, { total: 3, perAgent: { other: 1 } }]
const OUTCOMES: readonly Outcome[] = [
  {
    state: 'succeeded',
    result: { exitCode: 0 },
    summary: 'done',
    usage: { inputTokens: 5, outputTokens: 7, costMicrousd: 9 },
  },
  { state: 'failed', code: 'auth', error: '401' },
  { state: 'failed', code: 'auth', error: '403' },
  { state: 'failed', code: 'timeout', error: 'too long' },
  { state: 'cancelled' },
]
const worker = (at: number) => `wrk_${at % 3}` as WorkerId
const thread = (at: number) => `thr_${at % 4}` as ThreadId

/** What a step does, with its ids and choices made: the same for every store. */
export const STEPS = {
  register: (_, { who, how }) => {
    const kind = how % 2 === 0 ? 'daemon' : 'command'
    const added = { id: worker(who), kind, home: `home-${who % 2}`, identity: someIdentity() } as const
    return (store) => store.apply(registerWorker, added, how % 5 === 0 ? worker(who + 1) : undefined)
  },
  stop:
    (_, { who }) =>
    (store) =>
      store.apply(stopWorker, worker(who)),
  open:
    (_, { who, how }) =>
    (store) =>
      store.apply(openThread, thread(who), pick(AGENTS, how)!, null),
  submit: (history, { who, how }) => {
    const id = `run_${history.ids()}` as RunId
    history.runs.push(id)
    const request: RunRequest = { kind: 'command', argv: ['true', String(how % 2)], cwd: '/' }
    const submission = {
      id,
      request,
      threadId: thread(who),
      agent: pick(AGENTS, how)!,
      priority: how % 3,
      ...(how % 4 === 0 ? { key: `key-${who % 3}` } : {}),
      ...(how % 5 === 0 ? { expiresInMs: 3_000 } : {}),
      ...(how % 3 === 0 ? { parentThreadId: thread(who + 1), notify: how % 2 === 0 } : {}),
      ...(how % 11 === 0 ? { backlogLimit: 1 } : {}),
      ...(how % 7 === 0 ? { forWorker: worker(who) } : {}),
    }
    return (store) => store.apply(submitRun, submission)
  },
  claim: (history, { who, how }) => {
    const number = history.ids()
    const attempt = { id: `att_${number}` as AttemptId, mark: `mark-${number}` }
    const only = how % 6 === 0 ? pick(history.runs, who) : undefined
    const claimant = { workerId: worker(who), leaseMs: LEASE_MS, limits: pick(CAPACITIES, how)!, attempt }
    return async (store) => remember(history, await store.apply(claimRun, { ...claimant, ...(only && { only }) }))
  },
  start: ofAttempt((attempt) => (store) => store.apply(recordStarting, attempt)),
  renew:
    (_, { who }) =>
    (store) =>
      store.apply(renewLeases, worker(who), LEASE_MS).then(byId),
  finish: ofAttempt((attempt, how) => (store) => store.apply(finishRun, attempt, pick(OUTCOMES, how)!)),
  late: ofAttempt((attempt, how) => (store) => store.apply(keepLateResult, attempt, pick(OUTCOMES, how)!)),
  cancel: ofRun((id) => (store) => store.apply(cancelRun, id, { by: 'tester', reason: 'a test' })),
  park: ofAttempt((attempt) => (store) => store.apply(parkRun, attempt, 'a person')),
  resume: ofRun((id) => (store) => store.apply(resumeRun, id)),
  takeOver: (history, { who, how }) => {
    const held = pick(history.attempts, who)
    const taker = { workerId: worker(how), leaseMs: LEASE_MS, attemptId: `att_${history.ids()}` as AttemptId }
    if (held === undefined) return undefined
    return async (store) => remember(history, await store.apply(takeOverRun, held, pick(GROUNDS, how)!, taker))
  },
  disown: (history, { who, how }) => {
    const number = history.ids()
    const taker = { workerId: worker(how), leaseMs: LEASE_MS, attemptId: `att_${number}` as AttemptId, mark: 'none' }
    return async (store) => {
      const held = pick((await store.read(heldAttempts)).toSorted(compareIds), who)
      return held && (await store.apply(disownRun, held, taker, 'a person'))
    }
  },
  requeue: ofAttempt((attempt) => (store) => store.apply(requeueRun, attempt)),
  handOver: ofAttempt((attempt) => (store) => store.apply(handOverRun, attempt)),
  expire: () => (store) => store.apply(expireQueued, LIMITS.page),
  abandon: ofRun((id, how) => (store) => store.apply(abandonReserved, id, worker(how))),
} satisfies Record<string, Make>

function ofAttempt(act: (attempt: AttemptRef & { mark: string }, how: number) => Act): Make {
  return ({ attempts }, { who, how }) => {
    // The youngest first: they are the ones with something left to do.
    const attempt = pick(attempts.toReversed(), Math.floor(who / 3))
    return attempt && act(attempt, how)
  }
}

function ofRun(act: (id: RunId, how: number) => Act): Make {
  return ({ runs }, { who, how }) => {
    const id = pick(runs, who)
    return id && act(id, how)
  }
}

const compareIds = (left: { readonly id: string }, right: { readonly id: string }) => (left.id < right.id ? -1 : 1)
const byId = <T extends { readonly id: string }>(rows: readonly T[]): T[] => rows.toSorted(compareIds)

function remember<T extends Claim | undefined>({ attempts }: History, claim: T): T {
  if (claim === undefined || attempts.some(({ id }) => id === claim.attempt.id)) return claim
  attempts.push({ id: claim.attempt.id, runId: claim.run.id, fence: claim.run.fence, mark: claim.attempt.mark })
  return claim
}

/** What happens most in life happens most here: otherwise random steps seldom meet. */
const OFTEN: readonly Step['kind'][] = ['submit', 'claim', 'finish', 'submit', 'claim', 'takeOver', 'cancel', 'finish']

export const someStep: fc.Arbitrary<Step & { readonly passMs: number }> = fc.record({
  kind: fc.constantFrom(...(Object.keys(STEPS) as Step['kind'][]), ...OFTEN),
  who: fc.nat(30),
  how: fc.nat(60),
  passMs: fc.constantFrom(0, 0, 1, 500, 4_000, LEASE_MS + 1, LIMITS.breakerFirstMs + 1),
})
