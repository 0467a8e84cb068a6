import * as fc from 'fast-check'

import { findAction } from '../../src/actions/action.ts'
import { findApproval, approvalOf } from '../../src/actions/approval.ts'
import { decideApproval, expireApprovals } from '../../src/actions/decide.ts'
import { resolveDoubt } from '../../src/actions/doubt.ts'
import { settleAction, startAction } from '../../src/actions/perform.ts'
import { proposeAction } from '../../src/actions/propose.ts'
import type { ActionId, AttemptId, MessageId, RunId, ScheduleId, ThreadId, WorkerId } from '../../src/base/ids.ts'
import { renewLeases } from '../../src/runs/attempt.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { finishRun } from '../../src/runs/finish.ts'
import type { Outcome } from '../../src/runs/finish.ts'
import { parkRun, resumeRun } from '../../src/runs/park.ts'
import { handOverRun, takeOverRun } from '../../src/runs/recover.ts'
import { sendMessage, wakeThread } from '../../src/runs/send.ts'
import { submitRun } from '../../src/runs/submit.ts'
import { addSchedule, pauseSchedule, removeSchedule, resumeSchedule } from '../../src/schedule/edit.ts'
import { fireSchedule } from '../../src/schedule/fire.ts'
import { DEFAULT_OPTIONS } from '../../src/schedule/schedule.ts'
import type { Store } from '../../src/store/store.ts'
import { consumeMessages } from '../../src/threads/consume.ts'
import { acknowledgeDelivery, giveBackDelivery, leaseMessages } from '../../src/threads/delivery.ts'
import { idleThreads, pendingMessages } from '../../src/threads/message.ts'
import { removeThread } from '../../src/threads/remove.ts'
import { APPROVAL_MS, DELAY_MS, LEASE_MS } from './model.ts'
import type { Action, Attempt, Model } from './model.ts'
import type { Shown } from './look.ts'

/** One command of a sequence: what to do, numbers that choose to whom and how, and how much time passes before it. */
export interface Command {
  readonly kind: keyof typeof COMMANDS
  readonly who: number
  readonly how: number
  readonly passMs: number
}

/** The same thing, done by the model and by a store. Both answer with a word. */
interface Deed {
  readonly model: (model: Model) => string
  readonly store: (store: Store) => Promise<string>
  readonly shown?: Shown
}

interface Choice {
  readonly who: number
  readonly how: number
  /** A number of its own, for the ids of what it makes. */
  readonly number: number
}

/** Undefined when there is nobody yet to do it to. */
type Make = (model: Model, choice: Choice) => Deed | undefined

export const AGENT_THREADS = ['a', 'b'] as const
export const WORKERS = ['wrk_0', 'wrk_1'] as const
const THREADS = [...AGENT_THREADS, 'c', 'd'] as const
const BY = 'somebody'

const pick = <T>(list: readonly T[], at: number): T | undefined => list[at % Math.max(list.length, 1)]
const always = <T>(list: readonly T[], at: number): T => list[at % list.length]!
/** The youngest first: they are the ones with something left to do. */
const young = <T>(list: readonly T[], at: number): T | undefined => pick(list.toReversed(), Math.floor(at / 2))
/** Mostly one with whom there is something to do, if there is one; sometimes any, since that has to be refused. */
const likely = <T>(list: readonly T[], isFit: (each: T) => boolean, { who, how }: Choice): T | undefined => {
  const fit = how % 4 === 3 ? [] : list.filter(isFit)
  return young(fit.length > 0 ? fit : list, who)
}
const refOf = ({ id, runId, fence }: Attempt) => ({ id: id as AttemptId, runId: runId as RunId, fence, mark: id })
const holds = (model: Model, { runId, fence }: Attempt) =>
  model.run(runId).state === 'running' && model.run(runId).fence === fence

const OUTCOMES: Readonly<Record<'succeeded' | 'failed' | 'cancelled', Outcome>> = {
  succeeded: { state: 'succeeded', result: { exitCode: 0 } },
  failed: { state: 'failed', code: 'exit', error: 'exit 1' },
  cancelled: { state: 'cancelled' },
}

/** What a person says of a doubt, and what it is then. */
const RESOLUTIONS = [
  ['happened', 'done'],
  ['did-not-happen', 'failed'],
  ['run-again', 'approved'],
  ['give-up', 'in_doubt'],
] as const

const COMMANDS = {
  submit(_, { who, how, number }) {
    const [id, threadId, agent, priority] = [`run_${number}`, always(['c', 'd'], who), 'shell', how % 2]
    const key = how % 4 === 0 ? `key-${who % 2}` : undefined
    const parent = how % 3 === 0 ? always(AGENT_THREADS, how) : undefined
    const request = { kind: 'command', argv: ['true'], cwd: '/' } as const
    const optional = { ...(key && { key }), ...(parent && { parentThreadId: parent as ThreadId }) }
    const asked = { id: id as RunId, threadId: threadId as ThreadId, agent, request, priority, ...optional }
    return {
      shown: { threadId },
      model: (model) => model.submit({ id, threadId, agent, priority, key, parent, asked: `${priority} ${parent}` }),
      store: async (store) => (await store.apply(submitRun, asked)).kind,
    }
  },
  claim(_, { who, number }) {
    const [worker, id] = [always(WORKERS, who), `att_${number}`]
    const attempt = { id: id as AttemptId, mark: id }
    const claimant = { workerId: worker as WorkerId, leaseMs: LEASE_MS, limits: {}, agents: ['clerk'], attempt }
    return {
      model: (model) => model.claim(worker, id),
      store: async (store) => (await store.apply(claimRun, claimant))?.run.id ?? 'nothing',
    }
  },
  heartbeat(_, { who }) {
    const worker = always(WORKERS, who)
    return {
      model: (model) => model.renew(worker),
      store: async (store) => String((await store.apply(renewLeases, worker as WorkerId, LEASE_MS)).length),
    }
  },
  finish: ofAttempt((attempt, { how }) => {
    const ending = always(['succeeded', 'failed', 'succeeded', 'cancelled'] as const, how)
    return {
      model: (model) => model.finish(attempt, ending),
      async store(store) {
        const { kind, run } = await store.apply(finishRun, refOf(attempt), OUTCOMES[ending])
        return `${kind} ${run.state}`
      },
    }
  }),
  park: ofAttempt((attempt, { how }, model) => {
    const isWaitedFor = ({ runId, threadId, state }: Action) =>
      (runId === attempt.runId && state === 'waiting') ||
      (threadId === model.run(attempt.runId).threadId && state === 'in_doubt')
    const waits = model.actions.some(isWaitedFor)
    const why = waits && how % 3 > 0 ? 'a decision' : 'a person'
    return {
      model: () => model.park(attempt, why),
      store: async (store) => (await store.apply(parkRun, refOf(attempt), why)).kind,
    }
  }),
  resume: ofRun(['parked'], (id) => ({
    model: (model) => model.resume(model.run(id)),
    store: async (store) => ((await store.apply(resumeRun, id as RunId)) === undefined ? 'nothing' : 'resumed'),
  })),
  cancel: ofRun(['queued', 'running', 'parked'], (id) => ({
    model: (model) => model.cancel(model.run(id)),
    store: async (store) => (await store.apply(cancelRun, id as RunId, { by: BY })).kind,
  })),
  takeOver: ofAttempt((held, { who, how, number }) => {
    const ground = always(['lease-over', 'owner-dead', 'released'] as const, how)
    const [worker, id] = [always(WORKERS, who + how), `att_${number}`]
    const taker = { workerId: worker as WorkerId, leaseMs: LEASE_MS, attemptId: id as AttemptId, mark: id }
    return {
      model: (model) => model.takeOver(held, ground, worker, id),
      store: async (store) => (await store.apply(takeOverRun, refOf(held), ground, taker))?.run.id ?? 'nothing',
    }
  }),
  handOver: ofAttempt((attempt) => ({
    model: (model) => model.handOver(attempt),
    store: async (store) => String(await store.apply(handOverRun, refOf(attempt))),
  })),
  send(_, { who, how, number }) {
    const [threadId, id, runId] = [always(AGENT_THREADS, who), `msg_${number}`, `run_${number}`]
    const key = how % 3 === 0 ? `key-${how % 2}` : `message-${number}`
    const ids = { messageId: id as MessageId, threadId: threadId as ThreadId, runId: runId as RunId }
    return {
      shown: { threadId },
      model: (model) => model.send(id, threadId, key, runId),
      async store(store) {
        const { message, runId: led } = await store.apply(sendMessage, { ...ids, agent: 'clerk', text: 'Do it.', key })
        return `${message.id} ${message.state} ${led ?? '-'}`
      },
    }
  },
  wake(_, { number }) {
    const runOf = (threadId: string) => `run_${number}_${threadId}`
    return {
      model: (model) =>
        model
          .idle()
          .map((id) => model.wake(id, runOf(id)))
          .join(' '),
      async store(store) {
        const idle = (await store.read(idleThreads, ['clerk'], 10)).map(({ threadId }) => threadId).toSorted()
        const led: (string | undefined)[] = []
        for (const id of idle) led.push(await store.apply(wakeThread, id, 'clerk', runOf(id) as RunId))
        return led.join(' ')
      },
    }
  },
  take: ofAttempt((attempt, _, model) => {
    const run = model.run(attempt.runId)
    // Only who has it, and only what an agent is shown.
    if (!holds(model, attempt) || run.kind !== 'agent') return undefined
    return {
      model: () => model.consume(run),
      async store(store) {
        const threadId = run.threadId as ThreadId
        const ids = (await store.read(pendingMessages, threadId, 100)).map(({ id }) => id)
        await store.apply(consumeMessages, ids, run.id as RunId, threadId)
        return 'taken'
      },
    }
  }),
  lease(model, { who, how, number }) {
    const waiting = model.messages.filter(({ state }) => state === 'pending').map((message) => message.threadId)
    const [threadId, id, limit] = [pick(waiting, who) ?? always(THREADS, who), `dlv_${number}`, 1 + (how % 2)]
    const delivery = { id, threadId: threadId as ThreadId, by: { kind: 'hand' }, limit, bytes: 1_000_000 } as const
    return {
      shown: { threadId },
      model: () => model.lease(id, threadId, limit),
      store: async (store) => (await store.apply(leaseMessages, delivery)).messages.map((each) => each.id).join(' '),
    }
  },
  acknowledge: ofDelivery((id) => ({
    model: (model) => model.endDelivery(id, true),
    store: async (store) => String((await store.apply(acknowledgeDelivery, id)).length),
  })),
  giveBack: ofDelivery((id) => ({
    model: (model) => model.endDelivery(id, false),
    store: async (store) => String((await store.apply(giveBackDelivery, id)).length),
  })),
  remove(model, { who, how }) {
    // Of a thread that can be removed while somebody has what is in it: seldom by chance alone.
    const held = model.messages.filter(
      ({ state, threadId }) => state === 'leased' && model.active(threadId) === undefined,
    )
    const chosen = how % 4 === 3 ? undefined : pick(held, who)?.threadId
    const threadId = chosen ?? always(THREADS, who)
    return {
      shown: { threadId },
      model: () => model.remove(threadId),
      async store(store) {
        const removed = await store.apply(removeThread, threadId as ThreadId)
        return removed.kind === 'removed' ? `removed ${removed.deadLetters}` : removed.kind
      },
    }
  },
  propose: ofAttempt((attempt, { who, how, number }, model) => {
    if (!holds(model, attempt)) return undefined
    const { id: runId, threadId } = model.run(attempt.runId)
    // Mostly the same call: what is done once shows only in the second of them.
    const [id, isOnce, isAsked] = [`act_${number}`, how % 6 > 0, who % 2 === 0]
    const input = { entry: how % 6 === 5 ? 'another' : 'this' }
    const tool = isOnce ? 'pay' : 'note'
    const signature = `${tool} ${input.entry}`
    const action = { id: id as ActionId, mark: id, callId: id, tool, effect: 'write', input, signature } as const
    const verdict = { kind: isAsked ? 'ask' : 'allow', by: 'a rule', via: 'configuration' } as const
    const asked = { ...action, repeats: isOnce ? 'once' : 'each', verdict, expiresInMs: APPROVAL_MS } as const
    const place = { runId: runId as RunId, threadId: threadId as ThreadId, entrySeq: number, ordinal: 0 }
    return {
      model: () => model.propose({ id, signature, isOnce }, attempt, isAsked),
      store: async (store) => (await store.apply(proposeAction, asked, place)).state,
    }
  }),
  decide: ofAction(
    ({ approval, expiresAt }, model) => approval === 'pending' && expiresAt > model.now,
    (action, { how }, model) => {
      const kind = always(['approve', 'deny', 'skip', 'approve'] as const, how)
      const [id, isOther] = [approvalOf(action.id as ActionId), how % 8 === 4]
      const state = ({ approve: 'approved', deny: 'denied', skip: 'skipped' } as const)[kind]
      return {
        model: () => model.decide(action, state, isOther),
        async store(store) {
          const digest = isOther ? 'of something else' : ((await store.read(findApproval, id))?.digest ?? '')
          const answer = { kind, by: BY, via: 'a test', digest }
          return action.approval === undefined ? 'too-late' : (await store.apply(decideApproval, id, answer)).kind
        },
      }
    },
  ),
  start: ofAction(
    ({ state }) => state === 'approved',
    (action, { who, how }, model) => {
      const tried = model.attempts.filter(({ runId }) => runId === action.runId)
      const attempt = how % 8 === 1 ? always(tried, who) : tried.at(-1)!
      const isOther = how % 8 === 2
      const now = { agent: 'clerk', policy: [], version: isOther ? 'another' : '' }
      return {
        model: () => model.start(attempt, action, isOther),
        async store(store) {
          const { kind } = await store.apply(startAction, refOf(attempt), action.id as ActionId, now)
          return kind === 'started' ? kind : 'not started'
        },
      }
    },
  ),
  conclude: ofAction(
    ({ state }) => state === 'started' || state === 'in_doubt',
    (action, { who, how }, model) => {
      const state = always(['done', 'in_doubt', 'failed', 'in_doubt'] as const, who)
      const tries = how % 8 === 1 ? action.tries - 1 : action.tries
      return {
        model: () => model.conclude(action, tries, state),
        async store(store) {
          const found = await store.read(findAction, action.id as ActionId)
          return (await store.apply(settleAction, { ...found!, tries }, { state, by: 'its tool' })).state
        },
      }
    },
  ),
  resolve: ofAction(
    ({ state, isGivenUp }) => state === 'in_doubt' && isGivenUp !== true,
    (action, { who }, model) => {
      const [kind, state] = always(RESOLUTIONS, who)
      return {
        model: () => model.resolve(action, state),
        store: async (store) => (await store.apply(resolveDoubt, action.id as ActionId, { kind, by: BY })).kind,
      }
    },
  ),
  expire: () => ({
    model: (model) => model.expire(),
    store: async (store) => String(await store.apply(expireApprovals, 100)),
  }),
  schedule(_, { who, number }) {
    const [id, name] = [`sch_${number}`, always(['s', 't'], who)]
    const target = { kind: 'command', argv: ['true'], cwd: '/' } as const
    const rule = { kind: 'in', delayMs: DELAY_MS } as const
    const schedule = { name, kind: 'job', rule, target, options: DEFAULT_OPTIONS, madeBy: BY } as const
    return {
      model: (model) => model.schedule(id, name),
      store: async (store) => (await store.apply(addSchedule, { id: id as ScheduleId, ...schedule })).kind,
    }
  },
  pause: ofSchedule((id, model) => ({
    model: () =>
      model.steer(
        model.schedules.find((each) => each.id === id)!,
        'paused',
      ),
    store: async (store) => (await store.apply(pauseSchedule, id, BY)).kind,
  })),
  unpause: ofSchedule((id, model) => ({
    model: () =>
      model.steer(
        model.schedules.find((each) => each.id === id)!,
        'active',
      ),
    store: async (store) => (await store.apply(resumeSchedule, id, BY)).kind,
  })),
  fire: ofSchedule((id, model, { number }) => {
    const schedule = model.schedules.find((each) => each.id === id)!
    const [threadId, runId] = [`thr_${number}`, `run_${number}`]
    const ids = { threadId: threadId as ThreadId, runId: runId as RunId, messageId: `msg_${number}` as MessageId }
    const dueAt = schedule.nextAt ?? 0
    return {
      model: () => model.fire(schedule, threadId, runId),
      store: async (store) => (await store.apply(fireSchedule, id, dueAt, ids)).kind,
    }
  }),
  unschedule: ofSchedule((id, model) => ({
    model: () => model.unschedule(model.schedules.find((each) => each.id === id)!),
    store: async (store) => (await store.apply(removeSchedule, id, BY)).kind,
  })),
} satisfies Record<string, Make>

const MAKERS: Readonly<Record<Command['kind'], Make>> = COMMANDS

/** What this command does now; undefined when there is nobody yet to do it to. */
export const deedOf = (model: Model, { kind, who, how }: Command, number: number): Deed | undefined =>
  MAKERS[kind](model, { who, how, number })

function ofAttempt(make: (attempt: Attempt, choice: Choice, model: Model) => Deed | undefined): Make {
  return (model, choice) => {
    const attempt = likely(model.attempts, (each) => holds(model, each), choice)
    const deed = attempt && make(attempt, choice, model)
    return deed && { shown: { runId: attempt.runId }, ...deed }
  }
}

function ofRun(states: readonly string[], make: (id: string) => Deed): Make {
  return (model, choice) => {
    const run = likely(model.runs, ({ state }) => states.includes(state), choice)
    return run && { shown: { runId: run.id, threadId: run.threadId }, ...make(run.id) }
  }
}

function ofAction(
  isFit: (action: Action, model: Model) => boolean,
  make: (action: Action, choice: Choice, model: Model) => Deed,
): Make {
  return (model, choice) => {
    const fit = model.actions.filter((each) => isFit(each, model))
    // One that does not fit only now and then: there are more of those, and nothing becomes of it.
    const action = young(choice.how % 4 === 3 ? model.actions : fit, choice.who)
    return action && { shown: { runId: action.runId, threadId: action.threadId }, ...make(action, choice, model) }
  }
}

function ofDelivery(make: (id: string) => Deed): Make {
  return (model, { who }) => {
    const id = young([...new Set(model.messages.flatMap(({ delivery }) => delivery ?? []))], who)
    return id === undefined ? undefined : make(id)
  }
}

function ofSchedule(make: (id: ScheduleId, model: Model, choice: Choice) => Deed): Make {
  return (model, choice) => {
    const isAlive = ({ state }: Model['schedules'][number]) => state === 'active' || state === 'paused'
    const schedule = likely(model.schedules, isAlive, choice)
    return schedule && make(schedule.id as ScheduleId, model, choice)
  }
}

/** What happens most in life happens most here: otherwise random commands seldom meet. */
const OFTEN: readonly Command['kind'][] = [
  ...(['send', 'send', 'submit', 'submit', 'claim', 'claim', 'claim', 'claim', 'finish', 'finish'] as const),
  ...(['propose', 'propose', 'propose', 'propose', 'propose', 'decide', 'decide', 'start', 'start', 'start'] as const),
  ...(['start', 'conclude', 'conclude', 'conclude', 'conclude', 'resolve', 'resolve', 'resolve', 'park'] as const),
  ...(['lease', 'acknowledge', 'giveBack', 'take', 'schedule', 'fire', 'takeOver'] as const),
]

const MOMENTS: readonly number[] = Array.from({ length: 14 }, () => 1)

const aCommand: fc.Arbitrary<Command> = fc.record({
  kind: fc.constantFrom(...(Object.keys(COMMANDS) as Command['kind'][]), ...OFTEN),
  who: fc.nat(7),
  how: fc.nat(23),
  // Never at the same instant: what came first is then known without a number of the database.
  // Mostly a moment: otherwise every lease and every question is over before anybody has done anything about it.
  passMs: fc.constantFrom(...MOMENTS, 500, 500, DELAY_MS, DELAY_MS, LEASE_MS + 1, APPROVAL_MS + 1),
})

/** As long as they come: fast-check would begin with short ones, and each campaign begins anew. */
export const someCommands = fc.noBias(fc.array(aCommand, { minLength: 1, maxLength: 70, size: 'max' }))
