import { basename } from 'node:path'

import { HoldfastError } from '../../base/errors.ts'
import { factsOf } from './client.ts'
import type { ClientName } from './client.ts'

/** An argument that does nothing: by it, and by the script's name, we know our own entries again. */
export const MARK = '--holdfast-hook'
/** Also under the names that it had or may have. */
const SCRIPT = /^hook\.[cm]?js$/
const START_DAEMON = '--start-daemon'

/** The events of single tool calls. A command there would cost a process each time, so they go to the daemon over HTTP. */
export const TOOL_EVENTS = ['PreToolUse', 'PostToolUse'] as const
export const TOOL_EVENTS_PATH = '/api/v1/hooks/claude'
const TOOL_MARK = 'by=holdfast'
/** A tool waits for the answer; a daemon that is not there refuses at once. */
const TOOL_TIMEOUT_SECONDS = 10

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
}

export type Handler = Readonly<Record<string, unknown>>

/** Each event with the handler that we want there. */
export function wantedHandlers(wanted: Wanted): ReadonlyMap<string, Handler> {
  const { events, unitsPerSecond } = factsOf(wanted.client)
  const handlers = Object.entries(events).map(
    ([event, seconds]) => [event, { ...commandOf(wanted, event), timeout: seconds * unitsPerSecond }] as const,
  )
  const tools = wanted.daemon === undefined ? [] : TOOL_EVENTS.map((event) => [event, toolHandler(wanted)] as const)
  return new Map<string, Handler>([...handlers, ...tools])
}

/** Never `async`: what an asynchronous Stop answers comes too late to be read. */
function commandOf(wanted: Wanted, event: string): Handler {
  const more = [
    ...(wanted.startDaemon && event === 'SessionStart' ? [START_DAEMON] : []),
    ...(wanted.home === undefined ? [] : ['--home', wanted.home]),
    ...(wanted.store === undefined ? [] : ['--store', wanted.store]),
  ]
  const args = [wanted.script, wanted.client, MARK, ...more]
  if (factsOf(wanted.client).form === 'exec') return { type: 'command', command: wanted.node, args }
  const command = [wanted.node, ...args].map(quoted).join(' ')
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

const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)

export function isOurs(handler: unknown): handler is Handler {
  if (typeof handler !== 'object' || handler === null) return false
  const { type, url } = handler as Handler
  if (type === 'http') return typeof url === 'string' && url.endsWith(`?${TOOL_MARK}`)
  const words = wordsOf(handler as Handler)
  return words.includes(MARK) && words.some((word) => SCRIPT.test(basename(word)))
}

/** The words of a command, whichever way it is written. */
export function wordsOf({ command, args }: Handler): string[] {
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

/** What was chosen when these were installed; it stays chosen. `daemon`: where entries for single tool calls point. */
export function choicesIn(handlers: readonly Handler[]): Pick<Wanted, 'daemon' | 'startDaemon'> {
  const url = handlers.map((handler) => handler['url']).find((each) => typeof each === 'string')
  return {
    daemon: url?.slice(0, url.indexOf(TOOL_EVENTS_PATH)),
    startDaemon: handlers.some((handler) => wordsOf(handler).includes(START_DAEMON)),
  }
}
