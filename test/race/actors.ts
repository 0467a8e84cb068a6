import type { WorkerId } from '../../src/base/ids.ts'
import { newAttemptId, systemRandomness as random } from '../../src/base/ids.ts'
import { recordStarting, renewLeases } from '../../src/runs/attempt.ts'
import type { AttemptRef } from '../../src/runs/attempt.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import type { Claim } from '../../src/runs/claim.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { parkRun, resumeRun } from '../../src/runs/park.ts'
import { handOverRun, requeueRun, takeOverRun } from '../../src/runs/recover.ts'
import type { TakeoverGround } from '../../src/runs/recover.ts'
import type { Run } from '../../src/runs/run.ts'
import type { Store } from '../../src/store/store.ts'
import { LEASE_MS, claim } from '../support/world.ts'

export type HeldRef = AttemptRef & { readonly mark: string }

/** A worker, or a person, that goes from gate to gate; between two gates lies one transition. */
export interface Actor {
  readonly name: string
  readonly store: Store
  readonly workerId: WorkerId
  readonly run: Run
  /** The attempt that someone held when the scene began. */
  readonly held: HeldRef | undefined
  /** The attempt it believes to hold. */
  mine: HeldRef | undefined
  /** What each of its transitions answered, in order. */
  readonly told: unknown[]
}

export interface Step {
  readonly name: string
  act(actor: Actor): Promise<unknown>
}

const refOf = ({ run, attempt }: Claim): HeldRef => ({
  id: attempt.id,
  runId: run.id,
  fence: run.fence,
  mark: attempt.mark,
})

/** A step that only someone who believes to hold the run takes. */
const holding = (name: string, act: (actor: Actor, mine: HeldRef) => Promise<unknown>): Step => ({
  name,
  act: async (actor) => (actor.mine === undefined ? 'nothing held' : act(actor, actor.mine)),
})

export const step = {
  claim: {
    name: 'claim',
    async act(actor: Actor) {
      const claimed = await claim(actor.store, actor.workerId, { total: 50 }, actor.run.id)
      if (claimed !== undefined) actor.mine = refOf(claimed)
      return claimed === undefined ? 'refused' : 'claimed'
    },
  },
  start: holding('start', ({ store }, mine) => store.apply(recordStarting, mine)),
  finish: holding('finish', async ({ store, name }, mine) => {
    const { kind } = await store.apply(finishRun, mine, { state: 'succeeded', result: { by: name } })
    return kind
  }),
  park: holding('park', async ({ store }, mine) => (await store.apply(parkRun, mine, 'a person')).kind),
  requeue: holding('requeue', async ({ store }, mine) => (await store.apply(requeueRun, mine)).kind),
  renew: holding('renew', async ({ store, workerId }, mine) => {
    const still = await store.apply(renewLeases, workerId, LEASE_MS)
    return still.some(({ id }) => id === mine.id) ? 'renewed' : 'lost'
  }),
  handOver: {
    name: 'hand over',
    act: ({ store, held }: Actor) => store.apply(handOverRun, held!),
  },
  resume: {
    name: 'resume',
    act: async ({ store, run }: Actor) =>
      (await store.apply(resumeRun, run.id)) === undefined ? 'refused' : 'resumed',
  },
  cancel: {
    name: 'cancel',
    act: async ({ store, run }: Actor) => (await store.apply(cancelRun, run.id, { by: 'tester' })).kind,
  },
  takeOver: (ground: TakeoverGround): Step => ({
    name: 'take over',
    async act(actor) {
      const taker = { workerId: actor.workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
      const taken = await actor.store.apply(takeOverRun, actor.held!, ground, taker)
      if (taken !== undefined) actor.mine = refOf(taken)
      return taken === undefined ? 'refused' : 'taken'
    },
  }),
}

/** Every order in which two sequences can be dealt into each other: `LLR`, `LRL`, `RLL`. */
export function interleavings(left: number, right: number): string[] {
  if (left === 0 || right === 0) return ['L'.repeat(left) + 'R'.repeat(right)]
  return [
    ...interleavings(left - 1, right).map((rest) => `L${rest}`),
    ...interleavings(left, right - 1).map((rest) => `R${rest}`),
  ]
}
