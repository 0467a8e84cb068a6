import { readFileSync } from 'node:fs'

import { digestOf } from '../base/canonical-json.ts'
import { sleep, systemClock } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import { describeError } from '../base/errors.ts'
import type { LanguageModel, ModelCallOptions, ModelReply, ModelRequest, ModelUsage } from '../loop/ports.ts'
import { errorOfResponse, ModelError } from './model-error.ts'
import { parseScript, partsOf } from './script.ts'
import type { Script, ScriptedError, ScriptedReply, ScriptPart } from './script.ts'
import { NO_USAGE } from '../loop/usage.ts'

/**
 * A model that answers from a script, for demos and tests: the k-th recorded reply of a thread is the script's k-th.
 * The errors before a reply are met in their order, one a try, whoever tries: the same call again, or a run that was
 * parked in between. Which of them were met is remembered in this process only, so after a crash they are met again;
 * replies are not, because the thread itself counts them. A script with `repeat` counts from the user's last message.
 * Side calls use none of them up.
 */
export function scriptedModel(source: string | Script, options: ScriptedOptions = {}): LanguageModel {
  const name = typeof source === 'string' ? source : 'the script'
  const quota = typeof source === 'string' ? `scripted:${source}` : 'scripted'
  const script = parseScript(typeof source === 'string' ? readScript(source) : source, name)
  return new ScriptedModel({ id: options.id ?? quota, quota }, name, script, options.clock ?? systemClock)
}

export interface ScriptedOptions {
  /** As in the configuration, where the path may be a relative one. */
  readonly id?: string
  readonly clock?: Clock
}

class ScriptedModel implements LanguageModel {
  readonly id: string
  readonly quota: string
  readonly #name: string
  readonly #parts: readonly ScriptPart[]
  readonly #repeat: boolean
  readonly #side: readonly (ScriptedReply | ScriptedError)[]
  readonly #clock: Clock
  /** How many of the errors before a reply were met, for each thread on its way to it. */
  readonly #met = new Map<string, number>()
  #sideCalls = 0

  constructor(
    { id, quota }: { readonly id: string; readonly quota: string },
    name: string,
    script: Script,
    clock: Clock,
  ) {
    this.id = id
    this.quota = quota
    this.#name = name
    this.#parts = partsOf(script)
    this.#repeat = script.repeat === true
    this.#side = script.side ?? []
    this.#clock = clock
  }

  async generate(request: ModelRequest, { signal, onText }: ModelCallOptions): Promise<ModelReply> {
    if (request.purpose === 'turn') return this.#next(request, signal, onText)
    const answer = await this.#aside(request, signal)
    if (answer.text !== '') onText?.(answer.text)
    return answer
  }

  async #aside(request: ModelRequest, signal: AbortSignal): Promise<ModelReply> {
    const entry = this.#side[this.#sideCalls++] ?? sideReply(request)
    await sleep(this.#clock, entry.delayMs ?? 0, signal)
    signal.throwIfAborted()
    if ('error' in entry) throw failure(entry, this.#clock)
    return replyOf(entry, this.#sideCalls)
  }

  async #next(
    request: ModelRequest,
    signal: AbortSignal,
    onText: (delta: string) => void = () => {},
  ): Promise<ModelReply> {
    const place = this.#repeat ? repliesSinceUser(request) : request.replies
    const part = this.#parts[place] ?? { errors: [] }
    const key = `${request.replies} ${request.threadId ?? digestOf([request.system, request.messages])}`
    const met = this.#met.get(key) ?? 0
    const entry = part.errors[met] ?? part.reply
    if (entry === undefined) throw this.#beyond(place)
    await sleep(this.#clock, entry.delayMs ?? 0, signal)
    signal.throwIfAborted()
    if ('error' in entry) {
      this.#met.set(key, met + 1)
      throw failure(entry, this.#clock)
    }
    this.#met.delete(key)
    const reply = replyOf(this.#repeat ? filledIn(entry, lastSaid(request)) : entry, request.replies + 1)
    await this.#say(reply.text, entry.streamMs ?? 0, signal, onText)
    return reply
  }

  async #say(text: string, ms: number, signal: AbortSignal, onText: (delta: string) => void): Promise<void> {
    if (ms === 0 || text === '') return text === '' ? undefined : onText(text)
    const words = text.split(/(?<=\s)/)
    for (const word of words) {
      onText(word)
      await sleep(this.#clock, ms / words.length, signal)
      signal.throwIfAborted()
    }
  }

  #beyond(replies: number): ModelError {
    const count = this.#parts.filter(({ reply }) => reply !== undefined).length
    const has = count === 1 ? 'has 1 reply' : `has ${count} replies`
    return new ModelError('model/script', `${this.#name} ${has}, and this thread asks for reply ${replies + 1}`, {
      remedy: 'add replies to the script, or end the conversation earlier',
    })
  }
}

function repliesSinceUser({ messages }: ModelRequest): number {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  return messages.slice(last + 1).filter(({ role }) => role === 'assistant').length
}

const lastSaid = ({ messages }: ModelRequest) => messages.findLast(({ role }) => role === 'user')?.text ?? ''

/** In what the script says, not in what was put into it: a message that says `{{message}}` stays as it is. */
function filledIn(reply: ScriptedReply, message: string): ScriptedReply {
  const fill = (value: unknown): unknown => {
    if (typeof value === 'string') return value.replaceAll('{{message}}', () => message)
    if (Array.isArray(value)) return value.map(fill)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fill(inner)]))
  }
  return fill(reply) as ScriptedReply
}

/** Ids that are the same whenever the reply is given again. */
function replyOf({ text = '', toolCalls = [], usage, finish }: ScriptedReply, number: number): ModelReply {
  return {
    text,
    toolCalls: toolCalls.map(({ tool, input }, index) => ({
      id: `call_${number}_${index + 1}`,
      tool,
      input: input ?? {},
    })),
    usage: usageOf(usage),
    finish: finish ?? (toolCalls.length > 0 ? 'tool-calls' : 'stop'),
  }
}

const usageOf = (usage: Partial<ModelUsage> | undefined): ModelUsage => ({ ...NO_USAGE, ...usage })

function sideReply({ messages }: ModelRequest): ScriptedReply {
  return { text: `A conversation of ${messages.length} messages.` }
}

function failure({ error, usage }: ScriptedError, clock: Clock): ModelError {
  const { status, retryAfter, message = 'as the script says' } = error
  const details = usage === undefined ? {} : { usage: usageOf(usage) }
  if (status === undefined) return new ModelError('model/connection', `the connection broke, ${message}`, details)
  const headers = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }
  return errorOfResponse({ status, headers, message }, clock.now(), details)
}

function readScript(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as unknown
  } catch (cause) {
    throw new ModelError('model/script', `${path} cannot be read as a script: ${describeError(cause)}`, {
      remedy: 'it must be a JSON file: { "replies": [ { "text": "…" } ] }',
      cause,
    })
  }
}
