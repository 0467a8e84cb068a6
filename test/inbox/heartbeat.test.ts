import { expect, test } from 'vitest'

import { systemClock } from '../../src/base/clock.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { processIdentity } from '../../src/processes/identity.ts'
import { resumeDue } from '../../src/runs/park.ts'
import { expireQueued } from '../../src/runs/recover.ts'
import { listRuns } from '../../src/runs/run.ts'
import { sessionStarted, turnBegun, turnStopped } from '../../src/sessions/events.ts'
import { findSession } from '../../src/sessions/session.ts'
import type { Store } from '../../src/store/store.ts'
import type { Change } from '../../src/store/transition.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { buryUntaken, tryHeld } from '../../src/threads/dead-letter.ts'
import { giveBackDelivery, leaseMessages } from '../../src/threads/delivery.ts'
import { messagesIn } from '../../src/threads/message.ts'
import { forgetMarks } from '../../src/actions/window.ts'
import { forgetNotices } from '../../src/notify/notice.ts'
import { forgetMessages } from '../../src/threads/retention.ts'
import { registerThisProcess } from '../../src/workers/register.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import { BOSS, message } from './support.ts'
import { openThread } from '../../src/threads/thread.ts'

const IDLE = 'idle' as ThreadId

const dead = { ...processIdentity()!, startTime: 1 }

/** A store on which these changes fail, as on a sick disk. */
const failing = (store: Store, ...changes: readonly Change<never, unknown>[]): Store => ({
  engine: store.engine,
  apply: (change, ...args) =>
    changes.includes(change) ? Promise.reject(new Error('the disk is sick')) : store.apply(change, ...args),
  read: (look, ...args) => store.read(look, ...args),
  onChange: (listener) => store.onChange(listener),
  check: () => store.check(),
  warmUp: () => store.warmUp(),
  copyTo: (path) => store.copyTo(path),
  close: () => store.close(),
})

async function heartbeat(store: Store, more: { replaySpool?: () => Promise<void> } = {}): Promise<string[]> {
  const warnings: string[] = []
  const worker = await registerThisProcess({
    store,
    clock: systemClock,
    random,
    home: temporaryFolder(),
    kind: 'command',
    leaseMs: 15_000,
    limits: {},
    concurrency: 1,
    graceMs: 1_000,
    agents: new Map([['clerk', { command: ['true'] } as never]]),
    warn: (text) => void warnings.push(text),
    ...more,
  })
  await worker.tend()
  await worker.stop()
  return warnings
}

const FORGETTING = { forgetMessages, forgetNotices, forgetMarks }
const CHANGES = { expireQueued, resumeDue, tryHeld, buryUntaken, ...FORGETTING, giveBackDelivery }

test.each(engines)(
  'whatever fails, the heartbeat on $name does everything else, and says so once [M12] [M14] [M15]',
  async (engine) => {
    for (const [name, broken] of Object.entries(CHANGES)) {
      const store = await (await engine.database()).open()
      await store.apply(openThread, BOSS, 'conductor', null)
      await store.apply(openThread, IDLE, 'clerk', null)
      await store.apply(acceptMessage, message('c', { threadId: IDLE }))
      await store.apply(acceptMessage, message('a'))
      await store.apply(acceptMessage, message('held', { threadId: 'nobody' as ThreadId }))
      const by = { kind: 'process', identity: dead } as const
      await store.apply(leaseMessages, { id: 'lost', threadId: BOSS, by, limit: 5, bytes: LIMITS.deliveryBytes })
      const heard = { client: 'claude', sessionId: 's1', process: dead } as const
      await store.apply(sessionStarted, heard, 'startup')
      await store.apply(turnBegun, heard, 'p1')
      await store.apply(acceptMessage, message('b', { threadId: 'claude-s1' as ThreadId }))
      const stop = { turn: 'p1', ordinal: 1, isPaused: false, deliveryId: 'in-hand' }
      expect(await store.apply(turnStopped, heard, stop)).toMatchObject({ kind: 'go-on' })
      let replayed = 0
      const replaySpool = () => {
        replayed += 1
        return Promise.reject(new Error('the spool is sick'))
      }
      const warnings = await heartbeat(failing(store, broken), { replaySpool })
      expect([name, warnings.length, replayed]).toEqual([name, 2, 1])
      expect(warnings.join('\n')).toContain('the disk is sick')
      expect(await store.read(listRuns, { threadId: IDLE, limit: 5 })).toMatchObject([{ state: 'queued' }])
      expect(await store.read(findSession, 'claude:s1')).toMatchObject({ state: 'ended' })
      const waiting = await store.read(messagesIn, ['pending'], 10)
      const back = name === 'giveBackDelivery' ? ['b', 'c', 'held'] : ['a', 'b', 'c', 'held']
      expect(waiting.map(({ key }) => key).toSorted()).toEqual(back)
    }
  },
)
