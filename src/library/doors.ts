import { judgeProcess } from '../processes/identity.ts'
import { liveDaemons } from '../runs/worker.ts'
import { withdrawMessage } from '../runs/withdraw.ts'
import type { Runtime } from '../runtime.ts'
import type { ScheduleView } from '../schedule/view.ts'
import { CallDesk } from './calls.ts'
import { openApprovals, openDoubts } from './desk.ts'
import type { Approvals, Doubts } from './desk.ts'
import type { AgentEvent } from './event.ts'
import { follow } from './follow.ts'
import { followUp, openSchedules } from './schedules.ts'
import type { NewFollowUp, Schedules } from './schedules.ts'
import { send } from './send.ts'
import type { NewMessage, SentMessage } from './send.ts'

/** What a program does with a runtime, beyond looking. */
export interface Doors {
  readonly approvals: Approvals
  readonly doubts: Doubts
  readonly schedules: Schedules
  readonly calls: CallDesk
  send(message: NewMessage): Promise<SentMessage>
  /** What comes of a message. */
  follow(sending: Promise<SentMessage>, stopped: AbortSignal): AsyncGenerator<AgentEvent>
  followUp(asked: NewFollowUp): Promise<ScheduleView>
  /** A durable request, whoever carries the run out; the end is heard by whoever waits for it. */
  cancelWith(sending: Promise<SentMessage>, signal: AbortSignal): Promise<void>
  hasDaemon(): Promise<boolean>
}

export function openDoors(runtime: Runtime): Doors {
  const { store } = runtime
  return {
    approvals: openApprovals(runtime),
    doubts: openDoubts(runtime),
    schedules: openSchedules(runtime),
    calls: new CallDesk(runtime),
    send: (message) => send(runtime, message),
    follow: (sending, stopped) => follow(runtime, sending, stopped),
    followUp: (asked) => followUp(runtime, asked),
    async cancelWith(sending, signal) {
      const { messageId } = await sending
      const reason = signal.reason instanceof Error ? signal.reason.message : String(signal.reason)
      await store.apply(withdrawMessage, messageId, { by: 'its caller', reason })
    },
    async hasDaemon() {
      return (await store.read(liveDaemons, null)).some(({ identity }) => judgeProcess(identity) !== 'dead')
    },
  }
}
