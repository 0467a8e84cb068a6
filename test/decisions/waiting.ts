import { expect } from 'vitest'

import { pendingApprovals } from '../../src/actions/approval.ts'
import type { Answer } from '../../src/actions/decide.ts'
import type { RunId } from '../../src/base/ids.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import type { TestEngine } from '../support/engines.ts'
import { Stage } from '../support/stage.ts'
import { reread } from '../support/world.ts'

export const answer = (kind: Answer['kind'], digest: string): Answer => ({ kind, digest, by: 'ann', via: 'test' })

/** A world in which no rule allows anything. */
export async function strict(engine: TestEngine) {
  const clock = new FakeClock()
  const stage = new Stage(await (await engine.database()).open({ clock }))
  stage.policy = []
  return { stage, clock, store: stage.store }
}

type Strict = Awaited<ReturnType<typeof strict>>

/** A run that asked for these writes in one reply, and waits. */
export const waiting = async (engine: TestEngine, entries: readonly string[]) =>
  waitingIn(await strict(engine), entries)

export async function waitingIn<World extends Strict>(world: World, entries: readonly string[]) {
  const { stage, store } = world
  stage.replies = [{ calls: entries.map((entry) => ['append', { entry }]) }, { text: 'Done.' }]
  const runId: RunId = (await stage.send('go')).runId!
  expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
  expect(await reread(store, runId)).toMatchObject({ state: 'parked', parkedFor: 'a decision' })
  return { ...world, runId, approvals: await store.read(pendingApprovals, 10) }
}
