import { pendingApprovals } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import { newMessageId, newRunId, newScheduleId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId, ThreadId } from '../../src/base/ids.ts'
import { callOne, openCalls } from '../../src/runs/call.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { submitRun } from '../../src/runs/submit.ts'
import { addSchedule } from '../../src/schedule/edit.ts'
import { addFollowup } from '../../src/schedule/followup.ts'
import { DEFAULT_OPTIONS } from '../../src/schedule/schedule.ts'
import type { Store } from '../../src/store/store.ts'
import { timesOf } from './ledger.ts'
import type { Work } from './plan.ts'

/** What was acknowledged, and so has to come to its end. */
export interface Acknowledged {
  readonly runs: RunId[]
  readonly messages: string[]
  readonly schedules: string[]
}

export const nothing = (): Acknowledged => ({ runs: [], messages: [], schedules: [] })

/** Asks for one piece of work, and keeps what was promised. */
export async function askFor(store: Store, work: Work, ledger: string, promised: Acknowledged): Promise<void> {
  if (work === 'steps') return call(store, promised)
  if (work === 'command') return command(store, ledger, promised, 'sleep 0.1')
  if (work === 'errand') return command(store, ledger, promised, `until [ -e '${goOf(ledger)}' ]; do sleep 0.05; done`)
  if (work === 'schedule') return schedule(store, promised)
  const threadId = newThreadId(random)
  await send(store, work === 'follow-up' ? 'clerk' : work, threadId, promised)
  if (work === 'follow-up') await followUp(store, threadId, promised)
}

async function send(store: Store, agent: string, threadId: ThreadId, promised: Acknowledged): Promise<void> {
  const sending = { threadId, agent, text: 'go', key: `go ${threadId}` }
  const once = () => store.apply(sendMessage, { ...sending, messageId: newMessageId(random), runId: newRunId(random) })
  const { message, runId } = await once()
  // Whoever did not hear the answer sends it again.
  await once()
  promised.messages.push(message.id)
  if (runId !== undefined) promised.runs.push(runId)
}

async function call(store: Store, promised: Acknowledged): Promise<void> {
  const id = newRunId(random)
  await store.apply(openCalls, 'steps')
  await store.apply(callOne, { id, agent: 'steps', input: '{}' })
  promised.runs.push(id)
}

/** The file that lets errands come to their end. */
export const goOf = (ledger: string) => `${ledger}.go`

async function command(store: Store, ledger: string, promised: Acknowledged, first: string): Promise<void> {
  const id = newRunId(random)
  const argv = ['/bin/sh', '-c', `${first}; echo "$1 $1 command" >> "$2"`, 'sh', id, ledger] as const
  const request = { kind: 'command', argv, cwd: '/', env: { PATH: process.env['PATH'] ?? '' } } as const
  await store.apply(submitRun, { id, threadId: newThreadId(random), agent: 'command', request })
  promised.runs.push(id)
}

async function schedule(store: Store, promised: Acknowledged): Promise<void> {
  const id = newScheduleId(random)
  await store.apply(addSchedule, {
    id,
    name: id,
    kind: 'job',
    rule: { kind: 'in', delayMs: 100 },
    target: { kind: 'agent', agent: 'clerk', text: 'go' },
    options: DEFAULT_OPTIONS,
    madeBy: 'somebody',
  })
  promised.schedules.push(id)
}

async function followUp(store: Store, threadId: ThreadId, promised: Acknowledged): Promise<void> {
  const id = newScheduleId(random)
  await store.apply(addFollowup, { id, threadId, when: { delayMs: 150 }, prompt: 'go on', madeBy: 'somebody' })
  promised.schedules.push(id)
}

/**
 * A person who answers what waits, and settles doubts by what the ledger says. What is not in it may still come, from one
 * that is stopped in front of it: "did not happen" would be a guess, so it is to be done again, which ends that one first.
 */
export async function decide(store: Store, ledger: string): Promise<void> {
  for (const { id, digest } of await store.read(pendingApprovals, 100)) {
    const kind = id.endsWith('0') ? 'deny' : 'approve'
    await store.apply(decideApproval, id, { kind, by: 'a person', via: 'zombies', digest })
  }
  for (const doubt of await store.read(openDoubts, 100)) {
    const kind = timesOf(ledger, doubt) > 0 ? 'happened' : 'run-again'
    const word = { by: 'a person', why: 'the ledger says so' }
    const { kind: answer } = await store.apply(resolveDoubt, doubt.id, { kind, ...word })
    // By a clock that is years off its run has timed out, and nobody is there to do it again.
    if (answer === 'run-ended') await store.apply(resolveDoubt, doubt.id, { kind: 'give-up', ...word })
  }
}
