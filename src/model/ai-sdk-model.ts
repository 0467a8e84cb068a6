import type { Clock } from '../base/clock.ts'
import type {
  LanguageModel,
  ModelCallOptions,
  ModelMessage,
  ModelReply,
  ModelRequest,
  ModelUsage,
  ToolCall,
} from '../loop/ports.ts'
import { errorOfSdk } from './ai-sdk-error.ts'
import type { SdkMessage, SdkModel, SdkPart, SdkUsage } from './ai-sdk.ts'
import { ModelError } from './model-error.ts'
import { NO_USAGE } from './usage.ts'

export interface SdkModelOptions {
  readonly id: string
  readonly quota: string
  readonly clock: Clock
}

/** A model of the AI SDK behind our port. Always streamed: waiting for the answer is draining the stream. */
export function aiSdkModel(model: SdkModel, { id, quota, clock }: SdkModelOptions): LanguageModel {
  return {
    id,
    quota,
    async generate(request, options) {
      const heard = new Heard(options)
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
  usage: ModelUsage = NO_USAGE

  constructor(options: ModelCallOptions) {
    this.#options = options
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
      this.#calls.push({ id: part.toolCallId, tool: part.toolName, input: parsedInput(part.input) })
    } else if (part.type === 'raw') {
      this.usage = atLeast(this.usage, rawUsage(part.rawValue))
    } else if (part.type === 'finish') {
      this.#finish = part.finishReason.unified
      this.usage = atLeast(this.usage, finalUsage(part.usage))
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

const finalUsage = ({ inputTokens, outputTokens }: SdkUsage): ModelUsage => ({
  ...NO_USAGE,
  inputTokens: inputTokens.total ?? 0,
  outputTokens: outputTokens.total ?? 0,
})

/** Counts in an event grow, so the largest is the latest. */
const atLeast = (left: ModelUsage, right: ModelUsage): ModelUsage => ({
  inputTokens: Math.max(left.inputTokens, right.inputTokens),
  outputTokens: Math.max(left.outputTokens, right.outputTokens),
  costMicrousd: Math.max(left.costMicrousd, right.costMicrousd),
})

/** Anthropic tells the input's size in the first event; other providers at the end, where `finish` has it. */
function rawUsage(raw: unknown): ModelUsage {
  const event = raw as { message?: { usage?: RawUsage }; usage?: RawUsage } | null | undefined
  const usage = event?.message?.usage ?? event?.usage ?? {}
  const { input_tokens = 0, cache_read_input_tokens = 0, cache_creation_input_tokens = 0, output_tokens = 0 } = usage
  const inputTokens = input_tokens + (cache_read_input_tokens ?? 0) + (cache_creation_input_tokens ?? 0)
  return { inputTokens, outputTokens: output_tokens, costMicrousd: 0 }
}

interface RawUsage {
  readonly input_tokens?: number
  readonly cache_read_input_tokens?: number | null
  readonly cache_creation_input_tokens?: number | null
  readonly output_tokens?: number
}
