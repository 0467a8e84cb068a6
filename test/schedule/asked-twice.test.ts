import { describe, expect, test } from 'vitest'

import type { RunId, ScheduleId, ThreadId } from '../../src/base/ids.ts'
import { addFollowup } from '../../src/schedule/followup.ts'
import { livingOf } from '../../src/schedule/job.ts'
import { openThread } from '../../src/threads/thread.ts'
import { engines } from '../support/engines.ts'

const THREAD = 'asker' as ThreadId

describe.for(engines)('$name', (engine) => {
  test('a follow-up that two processes store at once, as one request, does not take its own place', async () => {
    const database = await engine.database()
    const [one, other] = [await database.open(), await database.open()]
    await one.apply(openThread, THREAD, 'clerk', null)
    for (const number of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const id = `sch_${number}` as ScheduleId
      const owner = { threadId: THREAD, runId: `run_${number}` as RunId, agent: 'clerk' }
      const asked = { id, threadId: THREAD, when: { delayMs: 60_000 }, prompt: 'look', owner, madeBy: 'agent clerk' }
      const [first, second] = await Promise.all([one.apply(addFollowup, asked), other.apply(addFollowup, asked)])
      expect(first).toMatchObject({ kind: 'added', schedule: { id, state: 'active' } })
      expect(second).toEqual(first)
    }
    expect(await one.read(livingOf, THREAD, 'followup', 20)).toHaveLength(8)
  })
})
