import { processIdentity, thisPlace } from '../processes/identity.ts'
import type { ProcessIdentity } from '../processes/identity.ts'
import type { Client } from '../sessions/session.ts'
import { given, isClient, textOf, unreadable } from './event.ts'
import type { Fields, Unreadable } from './event.ts'

/**
 * One event as the hook's command heard it: what the client said, word for word, and what only a process of the client can
 * know. The same record goes to the daemon, to the store and into the spool.
 */
export interface Told {
  /** One name for one event, however often it is told. */
  readonly id?: string
  readonly client: Client
  readonly input: string
  /** How long the input really was, when only its beginning was kept. */
  readonly bytes?: number
  /** Its number in its session; what a client sends to the daemon by itself has none. */
  readonly ordinal?: number
  /** The delivery that the client was last shown, null if none. */
  readonly shown?: string | null
  /** The client's process. */
  readonly process?: ToldProcess
  /** HOLDFAST_THREAD in the client's environment. */
  readonly startedFrom?: string
  readonly tmux?: { readonly socket: string; readonly pane: string }
  /** `permit`: the client wants leave for a tool. `settle`: it only says that a tool has ended. */
  readonly role?: 'permit' | 'settle'
  /** Somebody sits at the client and can be asked there. */
  readonly isAttended?: boolean
  /** HOLDFAST_RUN in the client's environment: the run that started it. */
  readonly startedBy?: string
  /** The processes above the client's, the nearest first, where it may have been started by a session of Codex or Gemini CLI. */
  readonly above?: readonly ToldProcess[]
  /** CODEX_THREAD_ID in the client's environment: its own session, or the one that started it. */
  readonly codexAround?: string
  /** From the spool: nobody waits for the answer. */
  readonly isReplayed?: boolean
}

/** Without the start time on systems where it cannot be read from a file. */
interface ToldProcess {
  readonly pid: number
  readonly startTime?: number
  readonly boot?: string
  readonly pidNamespace?: string
}

/** The host is added here: whoever tells us shares our home folder or our loopback. */
export function identityOf(told: ToldProcess | undefined): ProcessIdentity | undefined {
  if (told === undefined) return undefined
  const { pid, startTime, boot, pidNamespace } = told
  if (startTime === undefined || boot === undefined || pidNamespace === undefined) return processIdentity(pid)
  return { host: thisPlace().host, boot, pidNamespace, pid, startTime }
}

const ROLES = ['permit', 'settle'] as const

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What the hook's command wrote, perhaps another version of it. */
export function readTold(value: unknown): Told | Unreadable {
  if (!isFields(value)) return unreadable('it is not a record of an event')
  const { client, input, ordinal, shown, bytes } = value
  if (typeof client !== 'string' || !isClient(client)) return unreadable('it does not name its client')
  if (typeof input !== 'string') return unreadable('it does not say what the client said')
  const [id, startedFrom, startedBy] = [textOf(value, 'id'), textOf(value, 'startedFrom'), textOf(value, 'startedBy')]
  const codexAround = textOf(value, 'codexAround')
  const role = ROLES.find((each) => each === value['role'])
  return {
    ...(id === undefined ? {} : { id }),
    client,
    input,
    ...(isCount(bytes) ? { bytes } : {}),
    ...(isCount(ordinal) ? { ordinal } : {}),
    ...(shown === null || typeof shown === 'string' ? { shown } : {}),
    ...processIn(value['process']),
    ...given({ startedFrom, startedBy, codexAround, role }),
    ...aboveIn(value['above']),
    ...(value['isAttended'] === true ? { isAttended: true } : {}),
    ...tmuxIn(value['tmux']),
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0

function processIn(value: unknown): { readonly process?: ToldProcess } {
  if (!isFields(value) || !isCount(value['pid'])) return {}
  const [boot, pidNamespace] = [textOf(value, 'boot'), textOf(value, 'pidNamespace')]
  const { pid, startTime } = value
  if (!isCount(startTime) || boot === undefined || pidNamespace === undefined) return { process: { pid } }
  return { process: { pid, startTime, boot, pidNamespace } }
}

/** As many as the hook's command looks at; what is no process is none. */
const MOST_ABOVE = 16

function aboveIn(value: unknown): Pick<Told, 'above'> {
  if (!Array.isArray(value)) return {}
  const above = value.slice(0, MOST_ABOVE).flatMap((each: unknown) => processIn(each).process ?? [])
  return above.length === 0 ? {} : { above }
}

function tmuxIn(value: unknown): Pick<Told, 'tmux'> {
  if (!isFields(value)) return {}
  const [socket, pane] = [textOf(value, 'socket'), textOf(value, 'pane')]
  return socket === undefined || pane === undefined ? {} : { tmux: { socket, pane } }
}
