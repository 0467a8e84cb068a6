import { expect, test } from 'vitest'

import { awaitedBy } from '../../src/actions/desk.ts'
import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { refOf } from '../../src/workers/execute.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { Stage, results } from '../support/stage.ts'
import { reread } from '../support/world.ts'

// Found by a simulated world: the decision woke the run that had ended, and the one that waited slept for ever.
test.each(engines)(
  'a run that waits for what an earlier one left in doubt goes on when that is decided, on $name [actions/no-blind-retry]',
  async (engine) => {
    const stage = new Stage(await (await engine.database()).open())
    const { store } = stage
    stage.doubts = 'park'
    stage.replies = [{ calls: [['append', { entry: 'a' }]] }, { text: 'Done.' }]
    await stage.send('go')
    const first = await stage.claim()
    // Cut off by the end of its time, which ends the run.
    stage.perform = async () => {
      await store.apply(finishRun, refOf(first), { state: 'failed', code: 'timeout', error: 'timed out' })
      return { kind: 'in-doubt', error: 'timed out' }
    }
    await stage.run(first)
    expect(await reread(store, first.run.id)).toMatchObject({ state: 'failed', code: 'timeout' })
    const [doubt] = await store.read(openDoubts, 10)
    const { runId } = await stage.send('and now?', 'another')
    expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
    expect(await reread(store, runId!)).toMatchObject({ state: 'parked', parkedFor: 'a decision' })
    expect(await store.read(awaitedBy, runId!)).toMatchObject({ approvals: [], doubts: [{ id: doubt!.id }] })
    await assertInvariants(store)
    await store.apply(resolveDoubt, doubt!.id, { kind: 'happened', result: 'it is there', by: 'ann' })
    expect(await reread(store, runId!)).toMatchObject({ state: 'queued' })
    await stage.finished(await stage.claim())
    expect(results(stage.asked.at(-1)!)).toEqual(['it is there'])
    await assertInvariants(store)
  },
)
