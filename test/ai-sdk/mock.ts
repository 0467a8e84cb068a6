import type { LanguageModelV4CallOptions, LanguageModelV4Content, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { simulateReadableStream } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'

type Calls = readonly (readonly [tool: string, input: object])[]

/** What a scripted model says: words, calls by the name of a tool, or both. */
export type Says = string | Calls | { readonly says: string; readonly calls: Calls }

const wordsOf = (says: Says) => (typeof says === 'string' ? says : 'says' in says ? says.says : '')
const callsOf = (says: Says): Calls => (typeof says === 'string' ? [] : 'says' in says ? says.calls : says)

const USAGE = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
}

function contentOf(says: Says, step: number): LanguageModelV4Content[] {
  const text = wordsOf(says)
  const calls = callsOf(says).map(([toolName, input], index) => ({
    type: 'tool-call' as const,
    toolCallId: `call-${step}-${index}`,
    toolName,
    input: JSON.stringify(input),
  }))
  return text === '' ? calls : [{ type: 'text', text }, ...calls]
}

const finishOf = (says: Says) =>
  callsOf(says).length === 0
    ? { unified: 'stop' as const, raw: 'stop' }
    : { unified: 'tool-calls' as const, raw: undefined }

function spoken(text: string): LanguageModelV4StreamPart[] {
  const words = text.split(/(?<= )/).filter(Boolean)
  if (words.length === 0) return []
  const deltas = words.map((delta) => ({ type: 'text-delta' as const, id: 't', delta }))
  return [{ type: 'text-start', id: 't' }, ...deltas, { type: 'text-end', id: 't' }]
}

function partsOf(says: Says, step: number): LanguageModelV4StreamPart[] {
  return [
    { type: 'stream-start', warnings: [] },
    { type: 'response-metadata', id: `r${step}`, modelId: 'mock', timestamp: new Date(1_000) },
    ...spoken(wordsOf(says)),
    ...contentOf(says, step).filter((part) => part.type === 'tool-call'),
    { type: 'finish', usage: USAGE, finishReason: finishOf(says) },
  ]
}

/** Answers as they are: the k-th to the k-th question of a conversation. */
export function answering(answers: readonly (readonly LanguageModelV4Content[])[]) {
  const finishOfContent = (content: readonly LanguageModelV4Content[]) => ({
    unified: content.some(({ type }) => type === 'tool-call') ? ('tool-calls' as const) : ('stop' as const),
    raw: undefined,
  })
  const answer = (call: LanguageModelV4CallOptions) => answers[stepOf(call)] ?? [{ type: 'text', text: 'nothing more' }]
  return new MockLanguageModelV4({
    doGenerate: async (call) => {
      const content = [...answer(call)]
      return { content, finishReason: finishOfContent(content), usage: USAGE, warnings: [] }
    },
    doStream: async (call) => {
      const content = answer(call)
      const chunks: LanguageModelV4StreamPart[] = content.flatMap((part) =>
        part.type === 'text' ? spoken(part.text) : [part as LanguageModelV4StreamPart],
      )
      return {
        stream: simulateReadableStream({
          chunks: [...chunks, { type: 'finish', usage: USAGE, finishReason: finishOfContent(content) }],
        }),
      }
    },
  })
}

/** How many answers the conversation has: so the k-th is the same, whoever asks and however often. */
const stepOf = ({ prompt }: LanguageModelV4CallOptions) => prompt.filter(({ role }) => role === 'assistant').length

interface Watcher {
  /** When it is asked for its k-th answer. */
  readonly asked?: (step: number, call: LanguageModelV4CallOptions) => unknown
  /** When it has said a word of that; it goes on when this has come back. */
  readonly said?: (step: number) => unknown
}

/** The library's own mock. */
export function mock(script: readonly Says[], { asked, said }: Watcher = {}) {
  const answer = async (call: LanguageModelV4CallOptions) => {
    const step = stepOf(call)
    await asked?.(step, call)
    return { step, says: script[step] ?? 'nothing more' }
  }
  const telling = (step: number) =>
    new TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart>({
      async transform(part, controller) {
        controller.enqueue(part)
        if (part.type === 'text-delta') await said?.(step)
      },
    })
  return new MockLanguageModelV4({
    doGenerate: async (call) => {
      const { step, says } = await answer(call)
      return { content: contentOf(says, step), finishReason: finishOf(says), usage: USAGE, warnings: [] }
    },
    doStream: async (call) => {
      const { step, says } = await answer(call)
      return { stream: simulateReadableStream({ chunks: partsOf(says, step) }).pipeThrough(telling(step)) }
    },
  })
}
