import type { Randomness, ThreadId } from '../../base/ids.ts'
import { HoldfastError, describeError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import type { Answered, Conversation, Question, Said } from '../../define/own-loop.ts'
import { clip } from '../../loop/clip.ts'
import type { AskModel, LanguageModel, ModelRequest, ModelUsage } from '../../loop/ports.ts'
import { errorOfSdk } from '../../model/ai-sdk-error.ts'
import { callModel } from '../../model/call-model.ts'
import type { ModelOutcome } from '../../model/call-model.ts'
import { ModelError } from '../../model/model-error.ts'
import { costMicrousd, priceOf } from '../../model/prices.ts'
import { NO_USAGE } from '../../loop/usage.ts'
import { threadOfCalls } from '../../runs/call.ts'
import type { ClaimedCall } from '../../runs/call.ts'
import { keepLateReply } from '../../runs/finish.ts'
import { recordReply } from '../../runs/reply.ts'
import type { ReplyRecorded } from '../../runs/reply.ts'
import type { StepsRef } from '../../runs/step.ts'
import { textsOf } from '../../threads/delivery.ts'
import { pendingMessages } from '../../threads/message.ts'
import type { Transition } from '../../store/transition.ts'
import type { FunctionAgent } from './calls.ts'
import type { Executor } from '../execute.ts'
import { untilStored } from '../execute.ts'
import type { RecordedRun } from './function-run.ts'
import { asJson } from './judge-step.ts'

export interface QuestionPorts {
  readonly executor: Executor
  readonly call: ClaimedCall
  readonly run: RecordedRun
  readonly agent: FunctionAgent
  readonly random: Randomness
  readonly ref: StepsRef
  /** Where in the conversation an answer is kept, by the name of its record. */
  readonly entries: Map<string, number>
}

/** Asks a model for a loop that is not ours: a step that reads, recorded with the messages that it showed. */
export function askForLoop(ports: QuestionPorts, question: Question, place: string): Promise<Answered> {
  const { run } = ports
  return run.step(
    `${place}${question.name}`,
    ({ key }) => new Asking(ports, question, key.slice(run.id.length + 1)).toItsEnd(),
    { effect: 'read', errors: question.errors },
  )
}

/** Of a question that has never been answered. */
class Asking {
  readonly #ports: QuestionPorts
  readonly #question: Question
  readonly #step: string
  readonly #signal: AbortSignal

  constructor(ports: QuestionPorts, question: Question, step: string) {
    this.#ports = ports
    this.#question = question
    this.#step = step
    const { signal } = ports.run
    this.#signal = question.signal === undefined ? signal : AbortSignal.any([signal, question.signal])
  }

  async toItsEnd(): Promise<Answered> {
    for (;;) {
      // An answer that is under way is paid for: its run is not parked, because of something beside it, before it is recorded.
      const over = this.#ports.run.busy()
      const tried = await this.#once().finally(over)
      if (tried.kind === 'answered') return tried.answered
      if (tried.kind === 'superseded') return this.#ports.run.halt({ kind: 'stopped', why: 'superseded' })
      if (tried.kind === 'unanswered') return this.#withoutReply(tried.asked)
    }
  }

  async #once(): Promise<Tried> {
    const shown = await this.#inbox()
    const messages = shown.map(({ text }) => text)
    let said: Said | undefined
    const asked = await this.#ask(messages, (given) => (said = given))
    if (asked.kind !== 'replied' || said === undefined) return { kind: 'unanswered', asked }
    const answered = { reply: said.reply, messages, step: this.#step }
    const kind = await this.#record(answered, said, shown, asked.spent)
    return kind === 'recorded' ? { kind: 'answered', answered } : { kind }
  }

  /** What waits for this run. The thread that all calls of a function share is nobody's. */
  async #inbox() {
    const { executor, call } = this.#ports
    if (!this.#question.takesMessages || call.threadId === threadOfCalls(call.agent)) return []
    return executor.store.read(inboxOf, call.threadId)
  }

  async #ask(messages: readonly string[], onSaid: (said: Said) => void): Promise<ModelOutcome> {
    const { executor, random, agent, call } = this.#ports
    const { model: id, quota, conversation } = this.#question
    const { store, clock, warn } = executor
    const price = priceOf(id, agent.prices)
    let outcome: ModelOutcome | undefined
    const model: LanguageModel = {
      id,
      quota,
      generate: async (_request, { signal }) => {
        try {
          const said = await this.#question.ask(messages, signal)
          onSaid(said)
          const { text, toolCalls, finish } = said
          return { text, toolCalls, finish, usage: usageOf(said, price) }
        } catch (error) {
          throw this.#asModelError(error)
        }
      },
    }
    const ask: AskModel = async (request, options) => {
      outcome = await callModel({ store, clock, random, warn }, model, request, options)
      return outcome.kind === 'failed' ? { ...outcome, error: describeError(outcome.error) } : outcome
    }
    const watched = agent.watch?.ask(agent.name, id, ask, call.id) ?? ask
    await watched(requestOf(call.threadId, conversation(messages)), { signal: this.#signal })
    return outcome!
  }

  /** One whose answer has begun to be passed on cannot be asked again here: its reader would get two beginnings. */
  #asModelError(error: unknown): ModelError {
    const told = errorOfSdk(error, this.#ports.executor.clock.now(), NO_USAGE)
    if (!this.#question.isBegun()) return told
    return new ModelError('model/overloaded', `the answer broke off: ${told.message}`, { cause: error })
  }

  async #withoutReply(asked: ModelOutcome): Promise<never> {
    const { run } = this.#ports
    // Whoever has the run now asks for itself.
    if (run.signal.reason === 'lease-lost') return run.halt({ kind: 'stopped', why: 'superseded' })
    if (asked.kind === 'park') {
      const { until, reason, spent: usage } = asked
      return run.halt({ kind: 'waits', until, reason, usage })
    }
    throw asked.kind === 'failed' ? asked.error : stopReason(this.#signal)
  }

  /** `changed`: a message that it was shown is somebody else's now, and it is asked anew. */
  async #record(answered: Answered, said: Said, shown: Shown, usage: ModelUsage): Promise<ReplyRecorded['kind']> {
    const { executor, ref, entries } = this.#ports
    const kept = asJson(answered)
    if (kept.kind === 'trouble' || kept.text === null)
      throw new HoldfastError(
        'model/too-long',
        `its reply cannot be kept: ${kept.kind === 'trouble' ? kept.trouble : ''}`,
        { remedy: 'ask for less at once, or give the model a limit on what it may say (maxOutputTokens)' },
      )
    const { text, toolCalls } = said
    const asked = clip(this.#question.asked, LIMITS.askedCharacters)
    const reply = { step: this.#step, result: kept.text, asked, shown, said: { text, toolCalls }, usage }
    const recorded = await untilStored(executor, () => executor.store.apply(recordReply, ref, reply))
    const { kind } = recorded
    if (kind === 'superseded')
      await untilStored(executor, () => executor.store.apply(keepLateReply, ref, { text, usage }))
    if (recorded.kind === 'recorded' && recorded.entrySeq !== undefined) entries.set(this.#step, recorded.entrySeq)
    if (kind !== 'changed' || !this.#question.isBegun()) return kind
    throw new HoldfastError('inbox/taken', 'a message that the model was shown was taken by somebody else meanwhile', {
      remedy: 'call the function again',
    })
  }
}

type Tried =
  | { readonly kind: 'answered'; readonly answered: Answered }
  | { readonly kind: 'unanswered'; readonly asked: ModelOutcome }
  | { readonly kind: 'changed' | 'superseded' }

type Shown = readonly { readonly messageId: string; readonly text: string }[]

function* inboxOf(threadId: ThreadId): Transition<Shown> {
  return yield* textsOf(yield* pendingMessages.single(threadId, LIMITS.messagesPerTurn))
}

/** In words; what is asked is the loop's own affair. */
const requestOf = (threadId: ThreadId, conversation: Conversation): ModelRequest => ({
  ...conversation,
  tools: [],
  replies: 0,
  purpose: 'turn',
  threadId,
})

function usageOf({ tokens }: Said, price: ReturnType<typeof priceOf>): ModelUsage {
  const { input, cacheRead, cacheWrite, output } = tokens
  return {
    inputTokens: input + cacheRead + cacheWrite,
    outputTokens: output,
    costMicrousd: costMicrousd(price, tokens),
  }
}

const stopReason = ({ reason }: AbortSignal): Error =>
  reason instanceof Error ? reason : new DOMException(typeof reason === 'string' ? reason : 'stopped', 'AbortError')
