import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamResult,
} from '@ai-sdk/provider'
import { wrapLanguageModel } from 'ai'

import { HoldfastError } from '../base/errors.ts'
import type { Answered, OwnLoop, Question } from '../define/own-loop.ts'
import { tokensOf } from '../model/ai-sdk-model.ts'
import { keep, revive } from './kept.ts'
import { Insertions, digestOfPrompt } from './prompt.ts'
import { loopOf, noteWanted } from './run.ts'
import type { ToolSpec, WantedCall } from './run.ts'
import { asProgramKnows, sdkErrors } from './errors.ts'
import { answerIn, newlyAsked, spoken } from './spoken.ts'
import { Streaming } from './stream.ts'
import type { Part } from './stream.ts'

export interface ModelOptions {
  readonly run: object | undefined
  /** Whether it is shown what is in the inbox. */
  readonly inbox: boolean
}

type AnyModel = Parameters<typeof wrapLanguageModel>[0]['model']

/** The same model, and each of its answers is recorded before anything comes of it. */
export function durableModel(model: AnyModel | string, options: ModelOptions): LanguageModelV4 {
  if (typeof model === 'string')
    throw new HoldfastError('usage/ai-sdk', `"${model}" is the name of a model`, {
      remedy: 'pass the model itself, as gateway("…") or a provider\'s own function returns it',
    })
  const shown = new WeakMap<OwnLoop, Insertions>()
  const insertionsOf = (loop: OwnLoop) => {
    const known = shown.get(loop) ?? new Insertions()
    shown.set(loop, known)
    return known
  }
  const open = async (params: LanguageModelV4CallOptions, asked: LanguageModelV4, how: Asked['how']) => {
    const loop = await loopOf(options.run)
    return { loop, params, model: asked, how, insertions: insertionsOf(loop), inbox: options.inbox }
  }
  return wrapLanguageModel({
    model,
    middleware: {
      specificationVersion: 'v4',
      wrapGenerate: async ({ params, model: asked }) => generate(await open(params, asked, 'whole')),
      wrapStream: async ({ params, model: asked }) => stream(await open(params, asked, 'stream')),
    },
  })
}

interface Asked {
  readonly loop: OwnLoop
  readonly params: LanguageModelV4CallOptions
  readonly model: LanguageModelV4
  readonly how: 'whole' | 'stream'
  readonly insertions: Insertions
  readonly inbox: boolean
}

async function generate(asked: Asked): Promise<LanguageModelV4GenerateResult> {
  const { loop, params, model, insertions } = asked
  let live: LanguageModelV4GenerateResult | undefined
  const asking = loop.ask({
    ...about(asked),
    isBegun: () => false,
    async ask(messages, abortSignal) {
      const prompt = insertions.into(params.prompt, messages)
      live = await model.doGenerate({ ...params, prompt, abortSignal })
      const { content, finishReason, usage } = live
      refuseCut(finishReason.unified)
      const answer = answerIn(content, finishReason.unified)
      return { ...answer, reply: keep(lasting(live)), tokens: tokensOf(usage) }
    },
  })
  const answered = await asking.catch(rethrow)
  const result = live ?? (revive(answered.reply) as LanguageModelV4GenerateResult)
  note(asked, answered, result.content.flatMap(wantedCall))
  return result
}

/** Without what only the moment needs: the bytes that were sent and received. */
function lasting(whole: LanguageModelV4GenerateResult) {
  const { request: _, response, ...result } = whole
  if (response === undefined) return result
  const { id, modelId, timestamp } = response
  return { ...result, response: { id, modelId, timestamp } }
}

async function stream(asked: Asked): Promise<LanguageModelV4StreamResult> {
  const { loop, params, model, insertions } = asked
  const streaming = new Streaming()
  let live: Omit<LanguageModelV4StreamResult, 'stream'> = {}
  const answering = loop.ask({
    ...about(asked),
    signal:
      params.abortSignal === undefined ? streaming.signal : AbortSignal.any([params.abortSignal, streaming.signal]),
    isBegun: () => streaming.isBegun,
    async ask(messages, abortSignal) {
      const prompt = insertions.into(params.prompt, messages)
      const { stream: parts, ...around } = await model.doStream({ ...params, prompt, abortSignal })
      live = around
      const { reply, finish } = await streaming.hear(parts)
      const ending = refuseCut(finish?.finishReason.unified)
      return { ...answerIn(reply, ending), reply: keep(reply), tokens: tokensOf(finish!.usage) }
    },
  })
  const ended = answering.catch(rethrow).then((answered) => {
    const parts = revive(answered.reply) as Part[]
    note(asked, answered, parts.flatMap(wantedCall))
    streaming.end(parts)
  })
  await streaming.begins(ended)
  return { ...live, stream: streaming.readable }
}

function rethrow(error: unknown): never {
  throw asProgramKnows(error)
}

/** An answer without an end is none: it is asked for again. */
function refuseCut(finish: string | undefined): string {
  if (finish === undefined || finish === 'interrupted' || finish === 'error') throw new Error('the answer was cut off')
  return finish
}

function about({ params, model, how, inbox, insertions }: Asked): Omit<Question, 'ask' | 'isBegun'> {
  const { provider, modelId } = model
  const account = provider.split('.')[0] ?? provider
  return {
    name: `model ${digestOfPrompt(params.prompt).slice(0, 16)}${how === 'whole' ? '' : ' streamed'}`,
    model: `${account}/${modelId}`,
    quota: account,
    takesMessages: inbox,
    asked: newlyAsked(params.prompt),
    conversation: (messages) => spoken(insertions.into(params.prompt, messages)),
    errors: sdkErrors,
    ...(params.abortSignal === undefined ? {} : { signal: params.abortSignal }),
  }
}

function note({ loop, params, insertions }: Asked, answered: Answered, calls: readonly WantedCall[]): void {
  insertions.add(params.prompt, answered.messages)
  const specs = new Map<string, ToolSpec>()
  for (const tool of params.tools ?? [])
    if (tool.type === 'function')
      specs.set(tool.name, {
        description: tool.description ?? '',
        inputSchema: tool.inputSchema as ToolSpec['inputSchema'],
      })
  noteWanted(loop, { step: answered.step, calls, specs })
}

function wantedCall(part: { readonly type: string }): WantedCall[] {
  const call = part as WantedCall & { readonly type: string; readonly providerExecuted?: boolean }
  if (call.type !== 'tool-call' || call.providerExecuted === true) return []
  const { toolCallId, toolName, input } = call
  return [{ toolCallId, toolName, input }]
}
