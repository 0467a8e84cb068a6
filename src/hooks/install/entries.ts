import { basename } from 'node:path'

import { HoldfastError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import { shellWord } from '../../base/text.ts'
import { factsOf } from './client.ts'
import type { ClientName } from './client.ts'

/** An argument that does nothing: by it, and by the script's name, we know our own entries again. */
const MARK = '--holdfast-hook'
/** Also under the names that it had or may have. */
const SCRIPT = /^hook\.[cm]?js$/
const START_DAEMON = '--start-daemon'
/** What an entry is for, besides telling: see bin/hook.cjs. */
const [WAIT, PERMIT, SETTLE] = ['--wait', '--permit', '--settle'] as const

/** The events of single tool calls. A command there would cost a process each time, so they go to the daemon over HTTP. */
const TOOL_EVENTS = ['PreToolUse', 'PostToolUse'] as const
const TOOL_EVENTS_PATH = '/api/v1/hooks/claude'
const TOOL_MARK = 'by=holdfast'
/** A tool waits for the answer; a daemon that is not there refuses at once. */
const TOOL_TIMEOUT_SECONDS = 10

/** A session is idle from its start, or from the end of a turn. */
const IDLE_EVENTS = ['SessionStart', 'Stop'] as const
/** Who waits beside an idle session is ended by the client after this; a session that is idle for longer is not woken. */
const WAIT_SECONDS = 14 * 86_400
const PERMIT_SECONDS = 30
/** As long as a person can answer from elsewhere, and a little more. */
const HELD_SECONDS = LIMITS.permissionHeldMs / 1_000 + 30
const ENDS_OF_TOOLS = ['PostToolUse', 'PostToolUseFailure'] as const

/** What the entries should say. */
export interface Wanted {
  readonly client: ClientName
  /** Absolute: a client is started from anywhere, by anything. */
  readonly node: string
  readonly script: string
  readonly home: string | undefined
  readonly store: string | undefined
  /** Where the daemon listens, if single tool calls are to be seen too. */
  readonly daemon: string | undefined
  /** Whether the start of a session starts the daemon, where none is running. */
  readonly startDaemon: boolean
  /** Whether our rules, and people who are asked by us, decide what the client may do. */
  readonly permissions: boolean
}

export type Handler = Readonly<Record<string, unknown>>

/** Of one event there may be several entries of ours, each for something else. */
export function slotOf(event: string, handler: Handler): string {
  if (handler['type'] === 'http') return `${event}#http`
  return wordsOf(handler).includes(WAIT) ? `${event}#wait` : event
}

export const eventOf = (slot: string): string => slot.split('#', 1)[0] ?? slot

/** Each entry that we want. By default never asynchronous: what an asynchronous Stop answers comes too late to be read. */
export function wantedHandlers(wanted: Wanted): ReadonlyMap<string, Handler> {
  const { events, unitsPerSecond } = factsOf(wanted.client)
  const handlers = Object.entries(events).map(([event, seconds]): [string, Handler] => [
    event,
    { ...commandOf(wanted, event), timeout: seconds * unitsPerSecond },
  ])
  const tools = wanted.daemon === undefined ? [] : TOOL_EVENTS.map((event) => [event, toolHandler(wanted)] as const)
  const all = [...handlers, ...waiters(wanted), ...(wanted.permissions ? gates(wanted) : []), ...tools]
  return new Map(all.map(([event, handler]) => [slotOf(event, handler), handler]))
}

/** In the background, beside an idle session; it ends with the code by which Claude Code begins a turn. */
function waiters(wanted: Wanted): (readonly [string, Handler])[] {
  if (wanted.client !== 'claude') return []
  const waiter = { ...commandOf(wanted, '', WAIT), asyncRewake: true, timeout: WAIT_SECONDS }
  return IDLE_EVENTS.map((event) => [event, waiter] as const)
}

/** A gate that fails is closed. That a tool has ended is only reported, so nobody has to wait for it. */
function gates(wanted: Wanted): (readonly [string, Handler])[] {
  const gate = { ...commandOf(wanted, '', PERMIT), timeout: PERMIT_SECONDS, onFailure: 'block' }
  const ends = { ...commandOf(wanted, '', SETTLE), async: true, timeout: PERMIT_SECONDS }
  return [
    ['PreToolUse', gate],
    ['PermissionRequest', { ...commandOf(wanted, '', PERMIT), timeout: HELD_SECONDS }],
    ...ENDS_OF_TOOLS.map((event) => [event, ends] as const),
  ]
}

function commandOf(wanted: Wanted, event: string, ...purpose: readonly string[]): Handler {
  const more = [
    ...purpose,
    ...(wanted.startDaemon && event === 'SessionStart' ? [START_DAEMON] : []),
    ...(wanted.home === undefined ? [] : ['--home', wanted.home]),
    ...(wanted.store === undefined ? [] : ['--store', wanted.store]),
  ]
  const args = [wanted.script, wanted.client, MARK, ...more]
  if (factsOf(wanted.client).form === 'exec') return { type: 'command', command: wanted.node, args }
  const command = [wanted.node, ...args].map(shellWord).join(' ')
  if (wanted.client !== 'gemini') return { type: 'command', command }
  // Gemini puts values of the environment into its settings wherever there is a dollar sign.
  if (command.includes('$')) {
    throw new HoldfastError('usage/hooks-path', `Gemini CLI cannot be told of a path with a dollar sign: ${command}`, {
      remedy: 'move the folder, or link to it under another name',
    })
  }
  return { name: 'holdfast', type: 'command', command }
}

/** The token is named, never written: settings end up in repositories of dotfiles. */
function toolHandler({ daemon }: Wanted): Handler {
  return {
    type: 'http',
    url: `${daemon}${TOOL_EVENTS_PATH}?${TOOL_MARK}`,
    headers: { Authorization: 'Bearer $HOLDFAST_TOKEN' },
    allowedEnvVars: ['HOLDFAST_TOKEN'],
    timeout: TOOL_TIMEOUT_SECONDS,
  }
}

export function isOurs(handler: unknown): handler is Handler {
  if (typeof handler !== 'object' || handler === null) return false
  const { type, url } = handler as Handler
  if (type === 'http') return typeof url === 'string' && url.endsWith(`?${TOOL_MARK}`)
  const words = wordsOf(handler as Handler)
  return words.includes(MARK) && words.some((word) => SCRIPT.test(basename(word)))
}

/** The words of a command, whichever way it is written. */
function wordsOf({ command, args }: Handler): string[] {
  if (typeof command !== 'string') return []
  if (Array.isArray(args)) return [command, ...args.filter((word) => typeof word === 'string')]
  return Array.from(command.matchAll(/(?:'[^']*'|\\.|[^\s'\\])+/g), ([word]) =>
    word.replaceAll(
      /'([^']*)'|\\(.)/g,
      (_, inside: string | undefined, escaped: string | undefined) => inside ?? escaped ?? '',
    ),
  )
}

/** What an entry of ours starts, and for which home and store. */
export interface Target {
  readonly node: string | undefined
  readonly script: string | undefined
  readonly home: string | undefined
  readonly store: string | undefined
}

export function targetOf(handler: Handler): Target {
  const words = wordsOf(handler)
  const after = (flag: string) => (words.includes(flag) ? words[words.indexOf(flag) + 1] : undefined)
  return { node: words[0], script: words[1], home: after('--home'), store: after('--store') }
}

export type Choices = Pick<Wanted, 'daemon' | 'startDaemon' | 'permissions'>

/** What was chosen when these were installed; it stays chosen. `daemon`: where entries for single tool calls point. */
export function choicesIn(handlers: readonly Handler[]): Choices {
  const url = handlers.map((handler) => handler['url']).find((each) => typeof each === 'string')
  return {
    daemon: url?.slice(0, url.indexOf(TOOL_EVENTS_PATH)),
    startDaemon: handlers.some((handler) => wordsOf(handler).includes(START_DAEMON)),
    permissions: handlers.some((handler) => wordsOf(handler).includes(PERMIT)),
  }
}
