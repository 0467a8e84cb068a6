import { Steps } from './calls.ts'
import { failureOf } from './failure.ts'
import { countIn, fieldsIn, listIn, plain, readLines, sessionIn, textIn } from './turn.ts'
import type { ClientTurn, Fields, Printed } from './turn.ts'

const GONE = /no rollout found for thread id|thread\/resume failed/

/** Reads what `codex exec --json` prints. Its usage is that of the whole session, not of the turn. */
export function readCodex({ stdout, stderr }: Printed): ClientTurn {
  const { events, strays } = readLines(stdout)
  const steps = new Steps()
  for (const { type, item } of events) {
    if (type === 'item.started' || type === 'item.completed') heardItem(steps, fieldsIn(item), type)
  }
  const of = (type: string) => events.findLast((event) => event['type'] === type)
  const [started, completed, failed] = [of('thread.started'), of('turn.completed'), of('turn.failed')]
  const sessionId = started && sessionIn(started, 'thread_id')
  const reply = steps.lastWords
  const trouble = completed === undefined && failed === undefined ? of('error') : undefined
  return {
    steps: steps.all(),
    isOver: completed !== undefined || failed !== undefined,
    isGone: started === undefined && GONE.test(stderr),
    strays,
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(reply === undefined ? {} : { reply }),
    ...(failed === undefined ? {} : { failure: failureOf({ text: messageOf(fieldsIn(failed['error'])) }) }),
    ...(trouble === undefined ? {} : { trouble: messageOf(trouble) }),
    ...(completed === undefined ? {} : { sessionTokens: tokensOf(fieldsIn(completed['usage'])) }),
  }
}

const messageOf = (fields: Fields) => plain(textIn(fields, 'message') ?? 'it does not say why', 2_000)

const cached = (usage: Fields) => countIn(usage, 'cached_input_tokens') + countIn(usage, 'cache_write_input_tokens')

/** What was read from a cache is among its input. */
const tokensOf = (usage: Fields) => ({
  input: Math.max(0, countIn(usage, 'input_tokens') - cached(usage)),
  cacheRead: countIn(usage, 'cached_input_tokens'),
  cacheWrite: countIn(usage, 'cache_write_input_tokens'),
  output: countIn(usage, 'output_tokens'),
})

interface Described {
  readonly tool: string
  readonly effect: 'read' | 'write'
  readonly input: unknown
  readonly result: unknown
}

const TOOLS: Readonly<Record<string, (item: Fields) => Described>> = {
  command_execution: (item) => ({
    tool: 'command_execution',
    effect: 'write',
    input: { command: item['command'] },
    result: { exitCode: item['exit_code'] ?? null, output: item['aggregated_output'] ?? '' },
  }),
  file_change: (item) => ({
    tool: 'file_change',
    effect: 'write',
    input: { changes: listIn(item, 'changes') },
    result: item['status'] ?? '',
  }),
  mcp_tool_call: (item) => ({
    tool: `${textIn(item, 'server') ?? 'mcp'}/${textIn(item, 'tool') ?? 'unknown'}`,
    effect: 'write',
    input: item['arguments'] ?? {},
    result: item['result'] ?? item['error'] ?? '',
  }),
  collab_tool_call: (item) => ({
    tool: textIn(item, 'tool') ?? 'collab_tool_call',
    effect: 'write',
    input: { prompt: item['prompt'] ?? '' },
    result: item['status'] ?? '',
  }),
  web_search: (item) => ({ tool: 'web_search', effect: 'read', input: { query: item['query'] }, result: '' }),
}

function heardItem(steps: Steps, item: Fields, type: string): void {
  const [id, kind] = [textIn(item, 'id') ?? '', textIn(item, 'type') ?? '']
  if (kind === 'agent_message' && type === 'item.completed') {
    // Each message is a reply of its own, whatever was said before it.
    return steps.say(textIn(item, 'text') ?? '', id)
  }
  const describe = Object.hasOwn(TOOLS, kind) ? TOOLS[kind] : undefined
  if (describe === undefined) return
  const { result, ...call } = describe(item)
  steps.call({ id, ...call })
  if (type !== 'item.completed') return
  if (item['status'] === 'declined') steps.end(id, { state: 'refused', error: 'declined' })
  else steps.end(id, { state: 'done', result })
}
