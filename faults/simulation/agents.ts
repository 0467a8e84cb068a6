import type { Asked, ModelMessage, ModelRequest, Tool } from '../../src/loop/ports.ts'
import type { Store } from '../../src/store/store.ts'
import { delegateTool } from '../../src/tools/delegate.ts'
import type { AnyAgent, OpenAgent } from '../../src/workers/agents/execute-agent.ts'
import type { SimProcess } from './sim-process.ts'
import { READ, readTool, stepsBody, writeTool } from './tools.ts'
import type { World } from './world.ts'

export const CHILDREN = 5
const LOOKS = 2

/** What a model says: a function of what it was shown. */
export interface Thought {
  readonly text?: string
  readonly calls?: readonly (readonly [tool: string, input: unknown])[]
}

export interface AgentOptions {
  /** Whether a write that was cut off can be asked about. */
  readonly probes: boolean
  /** Whether the model says, this time, that it is asked too often, and to come back later. */
  readonly rests: (process: SimProcess) => boolean
}

/** The agents of this world: one that delegates and sums up, the ones that work, and a function of three steps. */
export function agentsOf(world: World, process: SimProcess, store: Store, options: AgentOptions) {
  const tool = (name: string, repeat: Tool['repeat'] = 'once') =>
    writeTool({ name, repeat, probes: options.probes }, process, world.ledger)
  const append = tool('append')
  const note = tool('note', 'each')
  const delegate = delegateTool({
    store,
    place: { cwd: '/', env: {}, codeCache: '/nowhere' },
    agents: ['clerk'],
    commands: false,
    limits: { depth: 3, children: 20 },
    backlogLimit: 10_000,
  })
  const agent = (name: string, think: (request: ModelRequest) => Thought, tools: readonly Tool[]): OpenAgent => ({
    name,
    system: `You are ${name}.`,
    policy: [{ decision: 'allow' }, { tool: 'pay', decision: 'ask' }],
    doubts: 'park',
    tools: new Map(tools.map((each) => [each.name, each])),
    ask: (request) => ask(process, () => world.isTroubled && options.rests(process), request, think),
  })
  return new Map<string, AnyAgent>([
    ['lead', agent('lead', lead, [delegate, append, note])],
    ['clerk', agent('clerk', clerk, [readTool(process), append, note, tool('pay')])],
    ['steps', { name: 'steps', body: stepsBody(process, world.ledger) }],
  ])
}

const NOTHING = { inputTokens: 0, outputTokens: 0, costMicrousd: 0 }

async function ask(
  process: SimProcess,
  rests: () => boolean,
  request: ModelRequest,
  think: (request: ModelRequest) => Thought,
): Promise<Asked> {
  await process.gate('before reply')
  if (rests()) return { kind: 'park', until: process.clock.now() + 500, reason: 'the model rests', spent: NOTHING }
  const { text = '', calls = [] } = think(request)
  const toolCalls = calls.map(([tool, input], index) => ({ id: `call_${request.replies}_${index}`, tool, input }))
  const spent = { inputTokens: 1, outputTokens: 1, costMicrousd: 1 }
  const reply = { text, toolCalls, usage: spent, finish: toolCalls.length === 0 ? 'stop' : 'tool-calls' } as const
  await process.gate('after reply')
  return { kind: 'replied', reply, spent }
}

const called = (messages: readonly ModelMessage[], tool: string) =>
  messages.flatMap((message) =>
    message.role === 'assistant' ? message.toolCalls.filter((call) => call.tool === tool) : [],
  ).length

const heardIn = (messages: readonly ModelMessage[], pattern: RegExp): Set<string> =>
  new Set(
    messages.flatMap(({ role, ...message }) =>
      role === 'user' && 'text' in message ? [...message.text.matchAll(pattern)].map(([, what]) => what ?? '') : [],
    ),
  )

/** Five children, a line for each word that comes in between, then a summary once each of them was heard of. */
function lead({ messages }: ModelRequest): Thought {
  const tasks = Number([...heardIn(messages, /Let (\d) do it/g)][0] ?? CHILDREN)
  if (called(messages, 'delegate') === 0) {
    const names = Array.from({ length: tasks }, (_, index) => `task ${index}`)
    return { calls: names.map((task) => ['delegate', { agent: 'clerk', task, mode: 'background' }]) }
  }
  const words = [...heardIn(messages, /by the way (\d)/g)]
  const noted = called(messages, 'note')
  if (words.length > noted) return { calls: [['note', { entry: `heard ${words[noted]}` }]] }
  if (called(messages, 'append') > 0) return { text: 'All is done.' }
  const heard = heardIn(messages, /finished task (\d)/g)
  return heard.size < tasks ? { text: `Heard of ${heard.size}.` } : { calls: [['append', { entry: 'summary' }]] }
}

/** Writes of each kind: one that is the same if it is made again, one that is another, one that a person must allow. */
function clerk({ messages }: ModelRequest): Thought {
  const task = messages.flatMap((message) => (message.role === 'user' ? [message.text] : [])).join(' ')
  const name = /task \d|round/.exec(task)?.[0] ?? 'something'
  const looked = called(messages, READ)
  if (/look first/.test(task) && looked < LOOKS) return { calls: [[READ, { entry: `${name} ${looked}` }]] }
  if (called(messages, 'append') === 0) return { calls: [['append', { entry: `${name} begun` }]] }
  if (called(messages, 'note') === 0) return { calls: [['note', { entry: `${name} noted` }]] }
  const paying = /task [024]/.test(name)
  if (paying && called(messages, 'pay') === 0) return { calls: [['pay', { entry: `${name} paid` }]] }
  return { text: `finished ${name}` }
}
