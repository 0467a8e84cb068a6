import { HoldfastError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import { processIdentity } from '../../processes/identity.ts'
import type { ProcessIdentity } from '../../processes/identity.ts'
import { findSession, latestSessions, sessionKey } from '../../sessions/session.ts'
import type { Client, Session } from '../../sessions/session.ts'
import { findThread } from '../../threads/thread.ts'
import type { Thread } from '../../threads/thread.ts'
import type { Context, Operator } from './context.ts'
import { theThread } from '../../control/find.ts'
import { GEMINI_MARK, hasProcess, sessionAbove } from './session-above.ts'

/** The variable in which each client tells the commands that it starts which session they belong to. */
const SESSION_VARIABLES: Readonly<Record<string, Client>> = {
  CLAUDE_CODE_SESSION_ID: 'claude',
  CODEX_THREAD_ID: 'codex',
}

/** What a run gets of the environment around it: it has a thread of its own, and is not the session that started it. */
export const outsideOfSession = (variables: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(variables).filter(([name]) => !(name in SESSION_VARIABLES) && name !== GEMINI_MARK))

/** This process, for what is taken in its name: its death gives that back. */
export function ownIdentity(otherwise: string): ProcessIdentity {
  const identity = processIdentity()
  if (identity !== undefined) return identity
  throw new HoldfastError('processes/no-identity', 'this process cannot be identified', {
    remedy: `check that /proc is mounted${otherwise}`,
  })
}

/** A thread by its id, a prefix that only it has, or `self`. */
export function threadOrSelf(context: Context, given: string): Promise<Thread> {
  return given === 'self' ? selfThread(context) : theThread(context.runtime.store, given)
}

/** What to call a thread by: what was given, or for `self` the thread that this process belongs to. */
export async function namedThread({ environment, local }: Operator, given: string): Promise<string> {
  if (given !== 'self') return given
  if (local !== undefined) return (await selfThread(local)).id
  // Which session a terminal belongs to only the machine knows where it runs.
  if (environment.thread !== undefined) return environment.thread
  throw new HoldfastError('usage/no-self', 'this process belongs to no thread, so there is no "self"', {
    remedy: 'name the thread; with HOLDFAST_URL only HOLDFAST_THREAD says which',
  })
}

/**
 * The thread that this process belongs to: by its client's own word, else by that of the run that started it, else by the
 * terminal that it runs in. Whoever cannot be told apart is told so: the inbox of another would be worse than none.
 */
export async function selfThread(context: Context): Promise<Thread> {
  const { environment, runtime } = context
  const session = await sessionOfClient(context)
  const id = session?.threadId ?? environment.thread ?? (await sessionOfPane(context))?.threadId
  if (id === undefined) {
    throw new HoldfastError('usage/no-self', 'this process belongs to no thread, so there is no "self"', {
      remedy: 'name the thread, or start this from inside a session with hooks or a run (HOLDFAST_THREAD says which)',
    })
  }
  const thread = await runtime.store.read(findThread, id)
  if (thread !== undefined) return thread
  throw new HoldfastError('not-found/self', `this process belongs to the thread "${id}", which is not here`, {
    remedy: 'check HOLDFAST_HOME and HOLDFAST_STORE: they may name another place than the one that has the thread',
  })
}

async function sessionOfClient({ environment, runtime }: Context): Promise<Session | undefined> {
  const { store } = runtime
  const named = Object.entries(SESSION_VARIABLES).flatMap(([variable, client]) => {
    const value = environment.variables[variable]
    return value === undefined || value === '' ? [] : [{ client, sessionId: value }]
  })
  const sessions: Session[] = []
  for (const { client, sessionId } of named) {
    const found = await store.read(findSession, sessionKey(client, sessionId))
    if (found === undefined) throw unknownSession(client, sessionId)
    sessions.push(found)
  }
  const above = await sessionAbove(store, environment.variables, sessions)
  if (above === 'unknown') throw unknownSession('gemini')
  if (above !== undefined && sessions.every(hasProcess)) return above
  if (above !== undefined && !sessions.includes(above)) sessions.push(above)
  const [first, second] = sessions
  if (first === undefined || second === undefined) return first
  // One client started the other, and what the outer one says of itself is inherited.
  if ((await store.read(findThread, second.threadId))?.parentId === first.threadId) return second
  if ((await store.read(findThread, first.threadId))?.parentId === second.threadId) return first
  throw ambiguous(`of ${first.threadId} and ${second.threadId}`)
}

/** It would be wrong to go on with what is inherited: the session around this one. */
const unknownSession = (client: Client, sessionId = 'around this process') =>
  new HoldfastError('not-found/self', `the session ${sessionId} of ${client} is not known here`, {
    remedy: `check that the hooks of ${client} are installed, or name the thread`,
  })

async function sessionOfPane({ environment, runtime }: Context): Promise<Session | undefined> {
  const { TMUX: tmux, TMUX_PANE: pane } = environment.variables
  if (tmux === undefined || pane === undefined) return undefined
  const [socket] = tmux.split(',')
  const here = (await runtime.store.read(latestSessions, LIMITS.lookedAfter)).filter(
    ({ wake }) => wake?.kind === 'tmux' && wake.socket === socket && wake.pane === pane,
  )
  if (here.length > 1) throw ambiguous(`several sessions run in the pane ${pane}`)
  return here[0]
}

const ambiguous = (what: string) =>
  new HoldfastError('usage/ambiguous', `"self" could be more than one thread: ${what}`, { remedy: 'name the thread' })
