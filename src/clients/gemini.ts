import { Steps } from './calls.ts'
import { failureOf } from './failure.ts'
import { countIn, fieldsIn, readLines, sessionIn, textIn } from './turn.ts'
import type { ClientTurn, Fields, Printed } from './turn.ts'

const READS = new Set(
  'list_directory read_file read_many_files glob grep_search search_file_content google_web_search enter_plan_mode'.split(
    ' ',
  ),
)

const GONE = /Error resuming session: (Invalid session identifier|No previous sessions found)/

/** It ends so when nobody has signed in, and says it on standard error alone. */
const NO_AUTH = /^.*(set an Auth method|Invalid auth method).*$/m

/** Reads what `gemini -o stream-json` prints. It numbers the tokens of this turn, and no cost. */
export function readGemini({ stdout, stderr }: Printed): ClientTurn {
  const { events, strays } = readLines(stdout)
  const steps = new Steps()
  for (const event of events) heard(steps, event)
  const init = events.find(({ type }) => type === 'init') ?? {}
  const result = events.findLast(({ type }) => type === 'result')
  const [sessionId, model] = [sessionIn(init, 'session_id'), textIn(init, 'model')]
  const reply = steps.lastWords
  const error =
    result?.['status'] === 'error' ? textIn(fieldsIn(result['error']), 'message') : NO_AUTH.exec(stderr)?.[0]
  return {
    steps: steps.all(),
    isOver: result !== undefined,
    isGone: GONE.test(stderr),
    strays,
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(model === undefined ? {} : { model }),
    ...(reply === undefined ? {} : { reply }),
    ...(error === undefined ? {} : { failure: failureOf({ text: inner(error) }) }),
    ...(result === undefined ? {} : { tokens: tokensOf(fieldsIn(result['stats'])) }),
  }
}

function heard(steps: Steps, event: Fields): void {
  const id = textIn(event, 'tool_id') ?? ''
  if (event['type'] === 'message' && event['role'] === 'assistant') steps.say(textIn(event, 'content') ?? '')
  if (event['type'] === 'tool_use') {
    const tool = textIn(event, 'tool_name') ?? 'unknown'
    steps.call({ id, tool, effect: READS.has(tool) ? 'read' : 'write', input: event['parameters'] ?? {} })
  }
  if (event['type'] !== 'tool_result') return
  const said = textIn(event, 'output') ?? ''
  const isError = event['status'] === 'error'
  steps.end(id, { state: 'done', result: isError ? { error: said, ...fieldsIn(event['error']) } : said })
}

/** What was read from a cache is among its input; what it thought is in none of its numbers but the total. */
const tokensOf = (stats: Fields) => {
  const [input, output] = [countIn(stats, 'input_tokens'), countIn(stats, 'output_tokens')]
  const [cacheRead, total] = [countIn(stats, 'cached'), countIn(stats, 'total_tokens')]
  return {
    input: Math.max(0, input - cacheRead),
    cacheRead,
    cacheWrite: 0,
    output: Math.max(output, total - input),
  }
}

/** `[API Error: {"error":{"message":"…"}}]`: the provider's own sentence, if it can be found. */
function inner(message: string): string {
  const found = /"message":"((?:[^"\\]|\\.)*)"/.exec(message)?.[1]
  return found === undefined ? message : `${found} [${message.slice(0, 300)}]`
}
