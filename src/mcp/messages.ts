import type { MessageId, RunId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { addressLetter, viewSent } from '../runs/address.ts'
import { startChild } from '../runs/children.ts'
import type { StartedChild } from '../runs/children.ts'
import { sendMessage } from '../runs/send.ts'
import type { Thread } from '../threads/thread.ts'
import { parentOf, turnOf } from './caller.ts'
import { ADDS, KEY, LOOKS, done, failed, numberFor, objectOf } from './tool.ts'
import type { Answer, Call, Desk, ServedTool } from './tool.ts'

export const messageTools = (desk: Desk): ServedTool[] => [
  whoAmI(desk),
  send(desk),
  ...(desk.agents.length === 0 ? [] : [delegate(desk)]),
  report(desk),
]

const whoAmI = ({ agents }: Desk): ServedTool => ({
  name: 'who_am_i',
  title: 'Who am I',
  description: 'Your thread, your turn, who started you, and the agents that you may delegate to.',
  inputSchema: objectOf({}),
  hints: LOOKS,
  call: async (_: unknown, { caller: { thread, run, parent } }) =>
    done({
      thread: thread.id,
      agent: thread.agent,
      ...(run === undefined ? {} : { run: run.id }),
      ...(parent === undefined ? {} : { parent: parent.id }),
      agents,
    }),
})

const words = (description: string) => ({ type: 'string', minLength: 1, description })

const send = (desk: Desk): ServedTool => ({
  name: 'send_message',
  title: 'Send a message',
  description:
    'Puts a message into the inbox of another thread, durably and once. It is labelled as yours; an idle agent begins a turn with it.',
  inputSchema: objectOf(
    {
      to: words('A thread by its id or the beginning of it, or "parent" for who started you.'),
      text: words('What you have to say, with everything that is needed to know.'),
      key: KEY,
    },
    ['to', 'text'],
  ),
  hints: ADDS,
  call: async ({ to, text }: { to: string; text: string }, call) => {
    const recipient = to === 'parent' ? parentOf(call.caller) : await desk.threadNamed(to)
    if (recipient.id === call.caller.thread.id)
      return failed('that is yourself: schedule_followup tells you something later')
    return post(desk, call, recipient, { text, number: numberFor(desk, `send_message ${recipient.id}`, call) })
  },
})

interface Post {
  readonly text: string
  readonly number: string
}

/** Its key has the sender in it: nobody can take the place of a message of somebody else, or of ours. */
async function post({ store, agents, random }: Desk, { caller }: Call, thread: Thread, { text, number }: Post) {
  const key = `mcp:${caller.thread.id}:${number}`
  const sending = addressLetter({ agents, random }, { to: { thread }, text, key })
  const sent = await store.apply(sendMessage, { ...sending, from: caller.thread.id })
  const { message, threadId, runId, anew } = viewSent(sent, text)
  const more = { ...(runId === undefined ? {} : { run: runId }), ...(anew === true ? { anew } : {}) }
  return done({ message: message.id, thread: threadId, ...more })
}

interface DelegateInput {
  readonly agent: string
  readonly task: string
}

const delegate = (desk: Desk): ServedTool => ({
  name: 'delegate',
  title: 'Delegate a task',
  description:
    'Gives a task to another agent, which works on it in a thread of its own while you go on. What it came to is put into your inbox when it has ended: read_inbox or wait_for_message shows it.',
  inputSchema: objectOf(
    {
      agent: { type: 'string', enum: desk.agents, description: 'Who is to do it.' },
      task: words('What is to be done, with everything that it needs to know.'),
      key: KEY,
    },
    ['agent', 'task'],
  ),
  // What that agent may do outside is for its own tools and rules.
  hints: { ...ADDS, openWorldHint: true },
  call: async ({ agent, task }: DelegateInput, call) => {
    if (task.trim() === '') return failed('task: is empty')
    const number = numberFor(desk, 'delegate', call)
    const started = await desk.store.apply(startChild, {
      parentRunId: turnOf(call.caller).id,
      // Its client does not wait for children: what they came to is put into the inbox, and wakes it.
      mode: 'detached',
      agent,
      key: `delegate:mcp:${number}`,
      threadId: `thr_${number}` as ThreadId,
      runId: `run_${number}` as RunId,
      messageId: `msg_${number}` as MessageId,
      work: { task },
      limits: { depth: LIMITS.delegationDepth, children: LIMITS.children },
      backlogLimit: desk.backlog,
    })
    return startedAnswer(started, agent)
  },
})

function startedAnswer(started: StartedChild, agent: string): Answer {
  switch (started.kind) {
    case 'started':
      return done({ thread: started.threadId, run: started.runId, agent, status: 'started' })
    case 'refused':
      return failed('your turn was cancelled or has ended, so nothing was started')
    case 'backlog-full':
      return failed(`${started.limit} runs are waiting already; wait until some have ended`)
    case 'limit':
      return failed(
        started.limit === 'depth'
          ? `delegation is ${started.value} levels deep, and that is the limit`
          : `${started.value} children are at work already, and that is the limit`,
      )
  }
}

const OUTCOMES = ['done', 'failed', 'blocked'] as const

interface ReportInput {
  readonly outcome: (typeof OUTCOMES)[number]
  readonly summary: string
}

/** One for each turn, whatever key it has: the parent also hears of the end of the turn itself, when that has come. */
const report = (desk: Desk): ServedTool => ({
  name: 'report_completion',
  title: 'Report completion',
  description:
    'Tells who started you what your turn came to, before it ends. There is one report for each turn: the same one again changes nothing, another one is refused.',
  inputSchema: objectOf(
    {
      outcome: { type: 'string', enum: OUTCOMES, description: 'blocked: you cannot go on without something else.' },
      summary: words('What was done, what was not, and where it is.'),
    },
    ['outcome', 'summary'],
  ),
  hints: { ...ADDS, idempotentHint: true },
  call: async ({ outcome, summary }: ReportInput, call) => {
    const run = turnOf(call.caller)
    return post(desk, call, parentOf(call.caller), {
      text: `[report of ${run.id}: ${outcome}]\n${summary}`,
      number: `report:${run.id}`,
    })
  },
})
