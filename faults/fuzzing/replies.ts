import { systemClock } from '../../src/base/clock.ts'
import { HoldfastError } from '../../src/base/errors.ts'
import { createRuntime, defineAgent, defineTool } from '../../src/index.ts'
import type { Runtime } from '../../src/index.ts'
import type { LanguageModel, ModelReply, ModelRequest } from '../../src/loop/ports.ts'
import { aiSdkModel } from '../../src/model/ai-sdk-model.ts'
import type { SdkModel, SdkPart } from '../../src/model/ai-sdk.ts'
import { scriptedModel } from '../../src/model/scripted.ts'
import type { Script } from '../../src/model/script.ts'
import type { Dice } from '../simulation/seeded.ts'
import { polluted } from './config.ts'
import { bent, bentText, oddJson, oddText, oddValue } from './odd.ts'
import type { Input, OpenSurface, Surface } from './surface.ts'

/** `script`: a file of replies. `stream`: what comes from a provider. `run`: the same, and an agent acts on it. */
const KINDS = ['script', 'stream', 'stream', 'stream', 'run'] as const
const TOOLS = ['note', 'guarded', 'refused', 'look'] as const
/** Parked for a person: nobody comes, so it is cancelled. */
const PATIENCE_MS = 50

const NOTE = {
  type: 'object',
  properties: { entry: { type: 'string', maxLength: 100 } },
  required: ['entry'],
  additionalProperties: false,
}

function callOf(dice: Dice, index: number) {
  const input = { entry: dice.pick(['milk', 'bread', oddText(dice).slice(0, 100)]) }
  const text = dice.chance(0.5) ? JSON.stringify(input) : oddJson(dice, input)
  const tool: string = dice.chance(0.9) ? dice.pick(TOOLS) : oddText(dice)
  return { type: 'tool-call', toolCallId: dice.pick([`c${index}`, 'c', oddText(dice)]), toolName: tool, input: text }
}

function partsOf(dice: Dice): unknown[] {
  const calls = Array.from({ length: dice.below(4) }, (_, index) => callOf(dice, index))
  const usage = { inputTokens: { total: dice.pick([10, undefined, -1, 1e300]) }, outputTokens: { total: 5 } }
  const unified = dice.pick(['stop', 'tool-calls', 'length', 'content-filter', 'other', 'interrupted', oddText(dice)])
  const finish = { type: 'finish', finishReason: { unified }, usage }
  const raw = { type: 'raw', rawValue: oddValue(dice) }
  const text = { type: 'text-delta', delta: dice.chance(0.5) ? 'Well.' : oddText(dice) }
  const whole = [text, ...(dice.chance(0.3) ? [raw] : []), ...calls, finish]
  if (dice.chance(0.15)) return whole.slice(0, dice.below(whole.length))
  return dice.chance(0.1) ? [...whole, { type: dice.pick(['error', oddText(dice)]), error: oddValue(dice) }] : whole
}

const scriptOf = (dice: Dice) => ({
  replies: [
    ...(dice.chance(0.2) ? [{ error: { status: 429, retryAfter: '1' } }] : []),
    { text: 'Well.', toolCalls: [{ tool: 'note', input: { entry: 'milk' } }], usage: { inputTokens: 1 } },
    { text: 'Done.', finish: 'length' },
  ],
  side: [{ text: 'A title' }],
  repeat: dice.chance(0.5),
})

function draw(dice: Dice): Input {
  const kind = dice.pick(KINDS)
  if (kind === 'script') return [kind, oddJson(dice, scriptOf(dice))]
  const parts = partsOf(dice)
  const text = JSON.stringify(dice.chance(0.2) ? bent(dice, parts) : parts)
  return [kind, dice.chance(0.03) ? bentText(dice, text) : text]
}

class Replies implements OpenSurface {
  readonly width = 10
  readonly #runtime: Runtime
  /** What is said to the message of this text. */
  readonly #said: Map<string, ModelReply>
  readonly #done: Done[]
  #runs = 0

  constructor(runtime: Runtime, said: Map<string, ModelReply>, done: Done[]) {
    this.#runtime = runtime
    this.#said = said
    this.#done = done
  }

  static async open(folder: string): Promise<Replies> {
    const [said, done] = [new Map<string, ModelReply>(), [] as Done[]]
    const tools = TOOLS.map((name) =>
      defineTool({
        name,
        description: 'Takes a note',
        effect: name === 'look' ? 'read' : 'write',
        inputSchema: NOTE,
        run: (input, _, { key }) => void done.push({ tool: name, input, key }),
      }),
    )
    const agent = defineAgent({ name: 'clerk', model: answering(said), system: 'You keep the ledger.', tools })
    const policy = [
      { tool: 'note', decision: 'allow' as const },
      { tool: 'guarded', decision: 'ask' as const },
      { tool: 'refused', decision: 'deny' as const },
    ]
    const runtime = await createRuntime({ home: folder, agents: [agent], policy, warn: () => {} })
    await runtime.start({ workers: 10 })
    return new Replies(runtime, said, done)
  }

  draw = draw

  async feed([kind, ...texts]: Input): Promise<readonly string[]> {
    const value = valueOf(texts.join(''))
    const answer = kind === 'script' ? await fromScript(value) : await fromStream(value)
    if ('problem' in answer) return [answer.problem]
    if (kind !== 'run' || answer.reply === undefined) return polluted()
    return [...(await this.#run(answer.reply)), ...polluted()]
  }

  async #run(reply: ModelReply): Promise<readonly string[]> {
    const text = `input ${(this.#runs += 1)}`
    this.#said.set(text, reply)
    const ended = new AbortController()
    const asked = this.#runtime.ask({ agent: 'clerk', text, signal: ended.signal })
    const timer = setInterval(() => void this.#cancelParked(asked.sent, ended), PATIENCE_MS)
    try {
      const { state, id, code } = await asked.run()
      if (!['succeeded', 'failed', 'cancelled'].includes(state)) return [`its run ${id} ended as ${state}`]
      if (code === 'lost' || code === 'internal') return [`its run ${id} failed as ${code}`]
    } finally {
      clearInterval(timer)
      this.#said.delete(text)
    }
    return []
  }

  async #cancelParked(sent: Promise<{ readonly runId?: string | undefined }>, ended: AbortController): Promise<void> {
    const [{ runId }, waiting] = await Promise.all([sent, this.#runtime.approvals.list()])
    if (waiting.some((approval) => approval.runId === runId)) ended.abort()
  }

  /** The tools counted what they did themselves. */
  settle(): Promise<readonly string[]> {
    const done = this.#done.splice(0)
    const keys = done.map(({ key }) => key)
    return Promise.resolve([
      ...done.filter(({ tool }) => tool === 'guarded' || tool === 'refused').map(({ tool }) => `${tool} was performed`),
      ...done.filter(({ input }) => !fits(input)).map(({ input }) => `performed with ${JSON.stringify(input)}`),
      ...keys.filter((key, index) => keys.indexOf(key) < index).map((key) => `the action ${key} was performed twice`),
    ])
  }

  runs(): number {
    return this.#runs
  }

  close(): Promise<void> {
    return this.#runtime.close()
  }
}

interface Done {
  readonly tool: string
  readonly input: Readonly<Record<string, unknown>>
  readonly key: string
}

const fits = (input: Done['input']) =>
  Object.keys(input).join() === 'entry' && typeof input['entry'] === 'string' && input['entry'].length <= 200

/** Says once what was drawn, and after that it is done. */
const answering = (said: ReadonlyMap<string, ModelReply>): LanguageModel => ({
  id: 'fuzzed',
  quota: 'fuzzed',
  generate({ messages }: ModelRequest) {
    const asked = messages.find(({ role }) => role === 'user')
    const drawn = messages.length > 1 ? undefined : said.get(asked?.text ?? '')
    const usage = { inputTokens: 1, outputTokens: 1, costMicrousd: 0 }
    return Promise.resolve(drawn ?? { text: 'Done.', toolCalls: [], usage, finish: 'stop' })
  },
})

type Answer = { readonly problem: string } | { readonly reply?: ModelReply }

const REQUEST: ModelRequest = {
  purpose: 'turn',
  system: '',
  messages: [{ role: 'user', text: 'Hello' }],
  tools: [],
  replies: 0,
}

async function fromScript(value: unknown): Promise<Answer> {
  return judged(() => {
    const model = scriptedModel(value as Script)
    const isSlow = /"(delay|stream)Ms":(?!0\b)/.test(JSON.stringify(value) ?? '')
    return isSlow ? Promise.resolve(undefined) : model.generate(REQUEST, { signal: AbortSignal.timeout(10_000) })
  })
}

async function fromStream(value: unknown): Promise<Answer> {
  const parts = (Array.isArray(value) ? value : [value]) as SdkPart[]
  const sdk: SdkModel = {
    specificationVersion: 'v4',
    doStream: () => Promise.resolve({ stream: ReadableStream.from(parts) }),
  }
  const model = aiSdkModel(sdk, { id: 'fuzzed', quota: 'fuzzed', clock: systemClock })
  return judged(() => model.generate(REQUEST, { signal: AbortSignal.timeout(10_000) }))
}

/** A reply, or an error with a code; what is in the reply is of its type. */
async function judged(generate: () => Promise<ModelReply | undefined>): Promise<Answer> {
  try {
    const reply = await generate()
    if (reply === undefined) return {}
    const { text, toolCalls, usage } = reply
    if (typeof text !== 'string') return { problem: `its text is ${typeof text}` }
    const strange = toolCalls.find(({ id, tool }) => typeof id !== 'string' || typeof tool !== 'string')
    if (strange !== undefined) return { problem: `a call of it is ${JSON.stringify(strange)}` }
    const amount = Object.entries(usage).find(([, count]) => !Number.isSafeInteger(count) || count < 0)
    return amount === undefined ? { reply } : { problem: `its usage has ${amount.join(': ')}` }
  } catch (error) {
    if (error instanceof HoldfastError) return {}
    return { problem: `it ended in ${error instanceof Error ? error.stack : String(error)}` }
  }
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export const replies: Surface = { name: 'model replies', open: (folder) => Replies.open(folder) }
