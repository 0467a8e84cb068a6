import { digestOf } from '../base/canonical-json.ts'
import type { ActionId } from '../base/ids.ts'
import { findApproval } from '../actions/approval.ts'
import type { Approval } from '../actions/approval.ts'
import type { Permission } from '../actions/observed.ts'
import { turnOf } from './caller.ts'
import { askPerson } from './ask-person.ts'
import type { Question } from './ask-person.ts'
import { ADDS, KEY, done, failed, numberFor, objectOf } from './tool.ts'
import type { Answer, Call, Desk, ServedTool } from './tool.ts'
import { WAIT_SECONDS, waitRound } from './wait.ts'

interface AskInput {
  readonly what: string
  readonly details?: Readonly<Record<string, unknown>>
  readonly wait_seconds?: number
}

const TOOL = 'ask_approval'

/**
 * A person says yes to exactly the bytes that are asked about, for one use. The question is an action of the caller's turn: it
 * is open for as long as that, in whichever process this server runs.
 */
export const approvalTools = (desk: Desk): ServedTool[] => [
  {
    name: TOOL,
    title: 'Ask a person for approval',
    description:
      'Asks a person whether you may do something, and waits for the answer. The yes covers exactly what you write here, once. While it says "not yet", ask again with the same words and key: that is the same question. It is open until your turn ends.',
    inputSchema: objectOf(
      {
        what: {
          type: 'string',
          minLength: 1,
          description: 'What you want to do, in a sentence that a person can decide on.',
        },
        details: { type: 'object', description: 'The exact facts: command, amounts, recipients, files.' },
        key: KEY,
        wait_seconds: WAIT_SECONDS,
      },
      ['what'],
    ),
    hints: ADDS,
    call: (input: AskInput, call) => ask(desk, call, input),
  },
]

async function ask(desk: Desk, call: Call, { what, details, wait_seconds: seconds }: AskInput): Promise<Answer> {
  const { caller } = call
  const run = turnOf(caller)
  if (run.request.kind === 'agent')
    return failed('an agent of Holdfast is asked for by its rules: call the tool itself')
  const place = {
    runId: run.id,
    threadId: run.threadId,
    generation: caller.thread.generation,
    agent: caller.thread.agent,
  }
  let asked: Approval | undefined
  const outcome = await waitRound(desk, call, {
    tool: TOOL,
    seconds,
    id: numberFor(desk, TOOL, call),
    look: async (id) => {
      // Once it is asked, only looking: what is written here would wake whoever waits, and that is this.
      if (asked !== undefined && (await isOpen(desk, asked))) return undefined
      const question = questionOf(id, place.agent, details === undefined ? { what } : { what, details })
      const permission = await desk.store.apply(askPerson, place, question, leaveOf(desk))
      asked = permission.kind === 'asked' ? permission.approval : undefined
      return permission.kind === 'asked' ? undefined : permission
    },
  })
  if (outcome.kind === 'later') return { kind: 'wait', waited: outcome.waited }
  return outcome.kind === 'found' ? decided(outcome.value) : notYet(asked)
}

async function isOpen({ store, clock }: Desk, { id, expiresAt }: Approval): Promise<boolean> {
  return (await store.read(findApproval, id))?.state === 'pending' && clock.now() < expiresAt
}

/** What is asked is part of its number: under the same key something else is another question, with an answer of its own. */
function questionOf(id: string, agent: string, input: object): Question {
  const number = digestOf([id, input]).slice(0, 32)
  return {
    id: `act_${number}` as ActionId,
    event: `mcp-${number}`,
    // Not the client's own name of the call: its hooks would take the end of that for an answer.
    callId: `mcp-${number}`,
    tool: TOOL,
    effect: 'write',
    input,
    version: `asked by ${agent}`,
  }
}

const leaveOf = ({ policy, approvalMs }: Desk) => ({
  policy: policy ?? [],
  isPolicyKnown: policy !== undefined,
  waits: 'held' as const,
  expiresInMs: approvalMs,
})

function decided(permission: Permission): Answer {
  if (permission.kind === 'allowed') return done({ decision: 'approved', by: permission.by })
  return done({ decision: 'refused', why: 'why' in permission ? permission.why : permission.kind })
}

const notYet = (asked: Approval | undefined): Answer =>
  done({
    decision: 'not yet',
    ...(asked === undefined ? {} : { approval: asked.id }),
    again: 'nobody has answered; ask again with the same words and key to go on waiting, and do not do it meanwhile',
  })
