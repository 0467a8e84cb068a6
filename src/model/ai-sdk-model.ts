import type { Clock } from '../base/clock.ts'
import type {
  LanguageModel,
  ModelCallOptions,
  ModelMessage,
  ModelPrice,
  ModelReply,
  ModelRequest,
  ModelUsage,
  ToolCall,
} from '../loop/ports.ts'
import { errorOfSdk } from './ai-sdk-error.ts'
import type { SdkMessage, SdkModel, SdkPart, SdkUsage } from './ai-sdk.ts'
import { ModelError } from './model-error.ts'
import { costMicrousd, priceOf } from './prices.ts'
import type { TokenCounts } from './prices.ts'

export interface SdkModelOptions {
  readonly id: string
  readonly quota: string
  readonly clock: Clock
  /** Without one the list price, and without that nothing. */
  readonly price?: ModelPrice
}

/** A model of the AI SDK behind our port. Always streamed: waiting for the answer is draining the stream. */
export function aiSdkModel(model: SdkModel, { id, quota, clock, price = priceOf(id) }: SdkModelOptions): LanguageModel {
  return {
    id,
    quota,
    async generate(request, options) {
      const heard = new Heard(options, price)
      try {
        const { stream } = await model.doStream({ ...asCall(request), abortSignal: options.signal })
        await heard.everything(stream)
        return heard.reply()
      } catch (error) {
        throw errorOfSdk(error, clock.now(), heard.usage)
      }
    },
  }
}

function asCall({ system, messages, tools }: ModelRequest) {
  const head: SdkMessage[] = system === '' ? [] : [{ role: 'system', content: system }]
  return {
    prompt: [...head, ...messages.flatMap(asSdkMessage)],
    tools: tools.map((tool) => ({ type: 'function' as const, ...tool })),
    // Raw events tell what an answer costs before it is complete.
    includeRawChunks: true,
  }
}

/** An assistant's turn without a word and without a call is left out: providers do not take an empty message. */
function asSdkMessage(message: ModelMessage): SdkMessage[] {
  if (message.role === 'user') return [{ role: 'user', content: [{ type: 'text', text: message.text }] }]
  if (message.role === 'tool') {
    const output = { type: message.failed ? ('error-text' as const) : ('text' as const), value: message.text }
    const result = { type: 'tool-result' as const, toolCallId: message.callId, toolName: message.tool, output }
    return [{ role: 'tool', content: [result] }]
  }
  const text = message.text === '' ? [] : [{ type: 'text' as const, text: message.text }]
  const calls = message.toolCalls.map(({ id, tool, input }) => ({
    type: 'tool-call' as const,
    toolCallId: id,
    toolName: tool,
    input,
  }))
  return text.length + calls.length === 0 ? [] : [{ role: 'assistant', content: [...text, ...calls] }]
}

/** What came so far of one answer. */
class Heard {
  readonly #options: ModelCallOptions
  readonly #calls: ToolCall[] = []
  #text = ''
  #finish: string | undefined
  #tokens: TokenCounts = NO_TOKENS
  readonly #price: ModelPrice | undefined

  constructor(options: ModelCallOptions, price: ModelPrice | undefined) {
    this.#options = options
    this.#price = price
  }

  /** The one place where tokens of a provider become money. */
  get usage(): ModelUsage {
    const { input, cacheRead, cacheWrite, output } = this.#tokens
    const inputTokens = input + cacheRead + cacheWrite
    return { inputTokens, outputTokens: output, costMicrousd: costMicrousd(this.#price, this.#tokens) }
  }

  async everything(stream: ReadableStream<SdkPart>): Promise<void> {
    for await (const part of stream) {
      this.#options.signal.throwIfAborted()
      this.#hear(part)
    }
  }

  reply(): ModelReply {
    const cut = this.#finish === undefined || this.#finish === 'interrupted' || this.#finish === 'error'
    if (cut) throw new ModelError('model/connection', 'the answer was cut off', { usage: this.usage })
    return { text: this.#text, toolCalls: this.#calls, usage: this.usage, finish: this.#ending() }
  }

  #hear(part: SdkPart): void {
    if (part.type === 'text-delta') {
      this.#text += part.delta
      this.#options.onText?.(part.delta)
    } else if (part.type === 'tool-call') {
      if (typeof part.toolCallId !== 'string' || typeof part.toolName !== 'string')
        throw new ModelError('model/connection', 'the answer has a tool call without a name', { usage: this.usage })
      this.#calls.push({ id: part.toolCallId, tool: part.toolName, input: parsedInput(part.input) })
    } else if (part.type === 'raw') {
      this.#tokens = atLeast(this.#tokens, rawUsage(part.rawValue))
    } else if (part.type === 'finish') {
      this.#finish = part.finishReason.unified
      this.#tokens = finalTokens(part.usage, this.#tokens)
    } else if (part.type === 'error') throw part.error
  }

  #ending(): ModelReply['finish'] {
    if (this.#finish === 'length') return 'length'
    if (this.#finish === 'content-filter') return 'refusal'
    return this.#calls.length > 0 ? 'tool-calls' : 'stop'
  }
}

/** Arguments that are not JSON go on as they are: the tool's own check tells the model what is wrong. */
function parsedInput(input: string): unknown {
  try {
    return input === '' ? {} : (JSON.parse(input) as unknown)
  } catch {
    return input
  }
}

const NO_TOKENS: TokenCounts = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }

/** What an answer that came whole has cost. */
export const tokensOf = (usage: SdkUsage): TokenCounts => finalTokens(usage, NO_TOKENS)

/** What is said at the end replaces what events said before it, as far as it is said. */
function finalTokens({ inputTokens, outputTokens }: SdkUsage, heard: TokenCounts): TokenCounts {
  const [cacheRead, cacheWrite] = [tokenCount(inputTokens.cacheRead), tokenCount(inputTokens.cacheWrite)]
  const output = Math.max(heard.output, tokenCount(outputTokens.total))
  if (!Number.isFinite(inputTokens.total)) return { ...heard, output }
  const input = Math.max(0, tokenCount(inputTokens.total) - cacheRead - cacheWrite)
  return { input, cacheRead, cacheWrite, output }
}

/** More than any model takes in a year; what adds up beyond what a number can count would be no amount any more. */
const MOST_TOKENS = 1e12

/** Whatever a provider says: what is no count is none, so that limits and prices have an amount to go by. */
const tokenCount = (said: unknown): number =>
  typeof said === 'number' && said > 0 ? Math.min(Math.ceil(said), MOST_TOKENS) : 0

/** Counts in an event grow, so the largest is the latest. */
const atLeast = (left: TokenCounts, right: TokenCounts): TokenCounts => ({
  input: Math.max(left.input, right.input),
  cacheRead: Math.max(left.cacheRead, right.cacheRead),
  cacheWrite: Math.max(left.cacheWrite, right.cacheWrite),
  output: Math.max(left.output, right.output),
})

/** Anthropic tells the input's size in the first event; other providers at the end, where `finish` has it. */
function rawUsage(raw: unknown): TokenCounts {
  const event = raw as { message?: { usage?: RawUsage }; usage?: RawUsage } | null | undefined
  const usage = event?.message?.usage ?? event?.usage ?? {}
  return {
    input: tokenCount(usage['input_tokens']),
    cacheRead: tokenCount(usage['cache_read_input_tokens']),
    cacheWrite: tokenCount(usage['cache_creation_input_tokens']),
    output: tokenCount(usage['output_tokens']),
  }
}

/** As it came over the wire. */
type RawUsage = Readonly<Record<string, unknown>>
