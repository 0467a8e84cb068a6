import type { Asked, ModelMessage, ModelRequest, Tool, ToolContext } from '../../src/loop/ports.ts'
import type { Store } from '../../src/store/store.ts'
import { delegateTool } from '../../src/tools/delegate.ts'
import type { OpenAgent } from '../../src/workers/execute-agent.ts'
import type { Injector } from './injector.ts'
import type { Ledger } from './ledger.ts'
import type { SimProcess } from './sim-process.ts'

export const CHILDREN = 5

interface AgentWorld {
  readonly process: SimProcess
  readonly store: Store
  readonly ledger: Ledger
  readonly injector: Injector
  /** Whether a write that was cut off can be asked about. */
  readonly probes: boolean
}

/** The agents of this world: one that delegates and sums up, and the ones that work. Their models are functions of what they see. */
export function agentsOf(world: AgentWorld): ReadonlyMap<string, OpenAgent> {
  const { store } = world
  const append = writeTool('append', world)
  const pay = writeTool('pay', world)
  const delegate = delegateTool({
    store,
    place: { cwd: '/', env: {}, codeCache: '/nowhere' },
    agents: ['clerk'],
    commands: false,
    limits: { depth: 3, children: 20 },
    backlogLimit: 10_000,
  })
  const policy = [{ decision: 'allow' as const }, { tool: 'pay', decision: 'ask' as const }]
  const agent = (name: string, think: (request: ModelRequest) => Thought, tools: readonly Tool[]): OpenAgent => ({
    name,
    system: `You are ${name}.`,
    policy,
    doubts: 'park',
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    ask: (request) => ask(world, request, think),
  })
  return new Map([
    ['lead', agent('lead', lead, [delegate, append])],
    ['clerk', agent('clerk', clerk, [append, pay])],
  ])
}

interface Thought {
  readonly text?: string
  readonly calls?: readonly (readonly [tool: string, input: unknown])[]
}

const NOTHING = { inputTokens: 0, outputTokens: 0, costMicrousd: 0 }

async function ask(
  { process, injector }: AgentWorld,
  request: ModelRequest,
  think: (request: ModelRequest) => Thought,
): Promise<Asked> {
  await process.gate()
  injector.happens('delay', 0.02, process)
  if (injector.on && process.dice.chance(0.01))
    return { kind: 'park', until: process.clock.now() + 500, reason: 'the model rests', spent: NOTHING }
  const { text = '', calls = [] } = think(request)
  const toolCalls = calls.map(([tool, input], index) => ({ id: `call_${request.replies}_${index}`, tool, input }))
  const spent = { inputTokens: 1, outputTokens: 1, costMicrousd: 1 }
  const reply = { text, toolCalls, usage: spent, finish: toolCalls.length === 0 ? 'stop' : 'tool-calls' } as const
  return { kind: 'replied', reply, spent }
}

const called = (messages: readonly ModelMessage[], tool: string) =>
  messages.flatMap((message) =>
    message.role === 'assistant' ? message.toolCalls.filter((call) => call.tool === tool) : [],
  ).length

/** Five children, then a summary once each of them was heard of. */
function lead({ messages }: ModelRequest): Thought {
  if (called(messages, 'delegate') === 0) {
    const tasks = Array.from({ length: CHILDREN }, (_, index) => `task ${index}`)
    return { calls: tasks.map((task) => ['delegate', { agent: 'clerk', task, mode: 'background' }]) }
  }
  if (called(messages, 'append') > 0) return { text: 'All is done.' }
  const heard = new Set(
    messages.flatMap(({ role, ...message }) =>
      role === 'user' && 'text' in message ? [...message.text.matchAll(/finished task (\d)/g)].map(([, n]) => n) : [],
    ),
  )
  return heard.size < CHILDREN ? { text: `Heard of ${heard.size}.` } : { calls: [['append', { entry: 'summary' }]] }
}

/** One write, one that a person must allow, and a word at the end. */
function clerk({ messages }: ModelRequest): Thought {
  const task = messages.flatMap((message) => (message.role === 'user' ? [message.text] : [])).join(' ')
  const name = /task \d|round/.exec(task)?.[0] ?? 'something'
  if (called(messages, 'append') === 0) return { calls: [['append', { entry: `${name} begun` }]] }
  const paying = /task [024]/.test(name)
  if (paying && called(messages, 'pay') === 0) return { calls: [['pay', { entry: `${name} paid` }]] }
  return { text: `finished ${name}` }
}

const NAME = { type: 'object', properties: { entry: { type: 'string' } }, required: ['entry'] } as const

function writeTool(name: string, world: AgentWorld): Tool {
  const { process, ledger, injector, probes } = world
  const entryOf = (input: unknown) => (input as { entry: string }).entry
  return {
    name,
    description: name,
    inputSchema: NAME,
    effect: 'write',
    repeat: 'once',
    timeoutMs: 60_000,
    idempotent: false,
    identity: entryOf,
    validate: (input) => ({ input }),
    async perform(input, context: ToolContext) {
      await process.gate()
      if (injector.happens('killed in a tool', 0.02, process)) await process.gate()
      ledger.write({ runId: context.runId, actionId: context.key, tool: name, entry: entryOf(input) })
      if (injector.happens('killed in a tool', 0.02, process)) await process.gate()
      await process.gate()
      return { kind: 'done', result: `did ${entryOf(input)}` }
    },
    ...(probes
      ? {
          async probe(_input: unknown, { key }: ToolContext) {
            await process.gate()
            const happened = ledger.timesOf(key) > 0
            return happened
              ? ({ kind: 'done', result: 'it is in the ledger' } as const)
              : ({ kind: 'failed', error: 'it is not in the ledger' } as const)
          },
        }
      : {}),
  }
}
