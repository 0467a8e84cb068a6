import { appendFileSync, existsSync, readFileSync } from 'node:fs'

import { defineAgent, defineFunction } from '../../src/define/agent.ts'
import type { AgentDefinition, FunctionDefinition } from '../../src/define/agent.ts'
import { defineTool } from '../../src/define/tool.ts'
import type { DefinedTool } from '../../src/define/tool.ts'
import type { LanguageModel, ModelMessage, ModelRequest } from '../../src/loop/ports.ts'
import type { Gate } from './gate.ts'

export const CHILDREN = 2

/** Several heartbeats. */
const SLOW_MS = 1_000

interface Surroundings {
  readonly gate: Gate
  /** The file in which effects are counted: one line each, `KEY RUN ENTRY`. */
  readonly ledger: string
}

/** The agents and the function of every worker. Their models are functions of what they see. */
export function agentsOf(world: Surroundings): readonly (AgentDefinition | FunctionDefinition)[] {
  const [note, probed, keyed, pay] = [
    writing('note', world),
    writing('probed', world, 'probe'),
    writing('keyed', world, 'key'),
    writing('pay', world),
  ]
  const agent = (name: string, think: Think, tools: readonly (DefinedTool | string)[], doubt: 'park' | 'tell') =>
    defineAgent({ name, model: modelOf(name, think, world.gate), tools, doubt })
  return [
    agent('clerk', one('note', 'probed', 'keyed'), [note, probed, keyed], 'tell'),
    agent('careful', one('note', 'probed'), [note, probed], 'park'),
    agent('slow', one('slowly'), [writing('slowly', world, undefined, SLOW_MS)], 'park'),
    agent('payer', one('pay', 'keyed'), [pay, keyed], 'park'),
    { ...agent('lead', lead, ['delegate', keyed], 'park'), delegates: ['clerk'] },
    stepsIn(world),
  ]
}

export const POLICY = [{ decision: 'allow' }, { tool: 'pay', decision: 'ask' }] as const

const timesIn = (ledger: string, key: string) =>
  existsSync(ledger)
    ? readFileSync(ledger, 'utf8')
        .split('\n')
        .filter((line) => line.startsWith(`${key} `)).length
    : 0

/** One line of the ledger, in front of and after which a process may stop. */
async function effect({ gate, ledger }: Surroundings, line: string): Promise<void> {
  await gate.at('effect', 'before')
  appendFileSync(ledger, `${line}\n`)
  await gate.at('effect', 'after')
}

/** One that honours its key looks for it in the instant in which it writes, as a unique index does. */
async function effectByKey({ gate, ledger }: Surroundings, key: string, line: string): Promise<void> {
  await gate.at('effect', 'before')
  if (timesIn(ledger, key) === 0) appendFileSync(ledger, `${line}\n`)
  await gate.at('effect', 'after')
}

function writing(name: string, world: Surroundings, settles?: 'probe' | 'key', waitMs = 0): DefinedTool {
  const { ledger } = world
  const definition = {
    name,
    description: 'Appends one entry.',
    effect: 'write',
    inputSchema: { type: 'object', properties: { entry: { type: 'string' } }, required: ['entry'] },
    run: async (
      { entry }: Record<string, unknown>,
      _signal: AbortSignal,
      call: { readonly key: string; readonly runId: string },
    ) => {
      // It does not listen to its signal, as many do not.
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
      const line = `${call.key} ${call.runId} ${String(entry)}`
      if (settles === 'key') await effectByKey(world, call.key, line)
      else await effect(world, line)
      return 'appended'
    },
  } as const
  if (settles === 'key') return defineTool({ ...definition, idempotent: true })
  if (settles !== 'probe') return defineTool(definition)
  const probe = (_input: unknown, _signal: AbortSignal, { key }: { readonly key: string }) => ({
    outcome: timesIn(ledger, key) > 0 ? ('done' as const) : ('not_done' as const),
  })
  return defineTool({ ...definition, probe })
}

interface Thought {
  readonly text?: string
  readonly calls?: readonly (readonly [tool: string, input: unknown])[]
}
type Think = (request: ModelRequest) => Thought

function modelOf(name: string, think: Think, gate: Gate): LanguageModel {
  return {
    id: name,
    quota: name,
    async generate(request) {
      await gate.at('model', 'before')
      const { text = '', calls = [] } = think(request)
      const toolCalls = calls.map(([tool, input], index) => ({ id: `call_${request.replies}_${index}`, tool, input }))
      await gate.at('model', 'after')
      const usage = { inputTokens: 1, outputTokens: 1, costMicrousd: 1 }
      return { text, toolCalls, usage, finish: toolCalls.length === 0 ? 'stop' : 'tool-calls' }
    },
  }
}

/** What was called since it was last asked for something. */
function calledNow(messages: readonly ModelMessage[]): readonly string[] {
  const asked = messages.findLastIndex((message) => message.role === 'assistant' && message.toolCalls.length === 0)
  return messages
    .slice(asked + 1)
    .flatMap((message) => (message.role === 'assistant' ? message.toolCalls.map(({ tool }) => tool) : []))
}

/** One tool after the other, each once a run. */
const one =
  (...tools: readonly string[]): Think =>
  ({ messages, replies }) => {
    const next = tools[calledNow(messages).length]
    return next === undefined ? { text: 'done' } : { calls: [[next, { entry: `${next}-${replies}` }]] }
  }

/** Some children, then an entry when each of them was heard of. */
const lead: Think = ({ messages }) => {
  const called = messages.flatMap((each) => (each.role === 'assistant' ? each.toolCalls.map(({ tool }) => tool) : []))
  if (!called.includes('delegate')) {
    const tasks = Array.from({ length: CHILDREN }, (_, index) => `task ${index}`)
    return { calls: tasks.map((task) => ['delegate', { agent: 'clerk', task, mode: 'background' }]) }
  }
  return called.includes('keyed') ? { text: 'done' } : { calls: [['keyed', { entry: 'sum' }]] }
}

/** A function of three steps: one that nobody can ask about, one that can be asked, one that honours its key. */
const stepsIn = (world: Surroundings) =>
  defineFunction('steps', async (run) => {
    const { ledger } = world
    const { id } = run
    await run.step('plain', ({ key }) => effect(world, `${key} ${id} plain`))
    await run.step('probed', ({ key }) => effect(world, `${key} ${id} probed`), {
      probe: ({ key }) => ({ outcome: timesIn(ledger, key) > 0 ? 'done' : 'not_done' }),
    })
    await run.step('keyed', ({ key }) => effectByKey(world, key, `${key} ${id} keyed`), { idempotent: true })
    return 'done'
  })
