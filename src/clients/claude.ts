import type { TokensTold } from '../sessions/kept.ts'
import { Steps } from './calls.ts'
import { claudeEffect } from './claude-tools.ts'
import { failureOf } from './failure.ts'
import { countIn, fieldsIn, isFields, listIn, moneyIn, plain, readLines, sessionIn, textIn } from './turn.ts'
import type { ClientFailure, ClientTurn, Fields, Printed } from './turn.ts'

const GONE = /No conversation found with session ID/

/** Reads what `claude -p --output-format stream-json --verbose` prints. */
export function readClaude({ stdout, stderr }: Printed): ClientTurn {
  const { events, strays } = readLines(stdout)
  const steps = new Steps()
  for (const event of events) {
    if (event['type'] === 'assistant') heardReply(steps, fieldsIn(event['message']))
    if (event['type'] === 'user') heardResults(steps, event)
  }
  const init = events.find(({ type, subtype }) => type === 'system' && subtype === 'init') ?? {}
  const result = events.findLast(({ type }) => type === 'result')
  const [sessionId, model] = [sessionIn(result ?? init, 'session_id'), textIn(init, 'model')]
  const failure = result === undefined ? undefined : failureIn(result)
  // Of a turn that failed, the result is the client's sentence about that.
  const said = result === undefined || failure !== undefined ? undefined : wordsIn(result)
  const reply = said ?? steps.lastWords
  const trouble = result === undefined ? troubleIn(events) : undefined
  return {
    steps: steps.all(),
    isOver: result !== undefined,
    isGone: GONE.test(stderr) || (result !== undefined && GONE.test(errorsIn(result))),
    strays,
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(model === undefined ? {} : { model }),
    ...(reply === undefined ? {} : { reply }),
    ...(failure === undefined ? {} : { failure }),
    ...(trouble === undefined ? {} : { trouble }),
    ...(result === undefined ? { tokens: tokensOfReplies(events) } : spentIn(result)),
  }
}

/** A call of it waits for a person: its process has ended, and comes back for the answer. */
function wordsIn(result: Fields): string | undefined {
  const deferred = result['deferred_tool_use']
  if (!isFields(deferred)) return textIn(result, 'result')
  return `(It waits for a person to decide about ${textIn(deferred, 'name') ?? 'a tool'}, and goes on when that is decided.)`
}

function heardReply(steps: Steps, message: Fields): void {
  // The client's own sentence about an error is not the model's.
  if (message['model'] === '<synthetic>') return
  const name = textIn(message, 'id')
  for (const block of listIn(message, 'content')) {
    if (block['type'] === 'text') steps.say(textIn(block, 'text') ?? '', name)
    if (block['type'] !== 'tool_use') continue
    const [id, tool] = [textIn(block, 'id') ?? '', textIn(block, 'name') ?? 'unknown']
    steps.call({ id, tool, effect: claudeEffect(tool), input: block['input'] ?? {} }, name)
  }
}

function heardResults(steps: Steps, event: Fields): void {
  const refused = new Set(
    listIn(event, 'tool_result_meta').flatMap((meta) =>
      meta['non_execution_kind'] === undefined ? [] : [textIn(meta, 'id')],
    ),
  )
  for (const block of listIn(fieldsIn(event['message']), 'content')) {
    if (block['type'] !== 'tool_result') continue
    const id = textIn(block, 'tool_use_id') ?? ''
    const said = wordsOf(block['content'])
    if (refused.has(id)) steps.end(id, { state: 'refused', error: said })
    else steps.end(id, { state: 'done', result: block['is_error'] === true ? { error: said } : said })
  }
}

/** A result is a text, or a list of parts; pictures are named, not kept. */
function wordsOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .filter(isFields)
    .map((part) => textIn(part, 'text') ?? `(${String(part['type'])})`)
    .join('\n')
}

function errorsIn(result: Fields): string {
  const errors = result['errors']
  return Array.isArray(errors) ? errors.filter((each) => typeof each === 'string').join('; ') : ''
}

function failureIn(result: Fields): ClientFailure | undefined {
  if (result['is_error'] !== true) return undefined
  const status = countIn(result, 'api_error_status')
  const kind = [textIn(result, 'terminal_reason'), textIn(result, 'api_error_type'), textIn(result, 'subtype')]
  const text = textIn(result, 'result') ?? errorsIn(result)
  return failureOf({ kind: kind.join(' '), text, ...(status === 0 ? {} : { status }) })
}

function troubleIn(events: readonly Fields[]): string | undefined {
  const last = events.at(-1)
  if (last?.['type'] !== 'system' || last['subtype'] !== 'api_retry') return undefined
  const error = plain(textIn(last, 'error') ?? 'an error', 200)
  return `${error} (${String(last['error_status'])}), after ${String(last['attempt'])} tries`
}

const NONE: TokensTold = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }

const add = (a: TokensTold, b: TokensTold): TokensTold => ({
  input: a.input + b.input,
  cacheRead: a.cacheRead + b.cacheRead,
  cacheWrite: a.cacheWrite + b.cacheWrite,
  output: a.output + b.output,
})

/**
 * What this turn took. `model_usage_since_last_result` has every model, those of subagents too, and the cost; the total cost is
 * that of the whole session, and `usage` that of the main conversation, in clients that do not say the first.
 */
function spentIn(result: Fields): Pick<ClientTurn, 'tokens' | 'costUsd' | 'sessionCostUsd'> {
  const models = Object.values(fieldsIn(result['model_usage_since_last_result'])).filter(isFields)
  const total = moneyIn(result, 'total_cost_usd')
  const session = total === undefined ? {} : { sessionCostUsd: total }
  if (models.length === 0) return { tokens: tokensOf(fieldsIn(result['usage'])), ...session }
  const tokens = models.map((model) => ({
    input: countIn(model, 'inputTokens'),
    cacheRead: countIn(model, 'cacheReadInputTokens'),
    cacheWrite: countIn(model, 'cacheCreationInputTokens'),
    output: countIn(model, 'outputTokens'),
  }))
  const costUsd = models.reduce((sum, model) => sum + (moneyIn(model, 'costUSD') ?? 0), 0)
  return { tokens: tokens.reduce(add, NONE), costUsd, ...session }
}

const tokensOf = (usage: Fields): TokensTold => ({
  input: countIn(usage, 'input_tokens'),
  cacheRead: countIn(usage, 'cache_read_input_tokens'),
  cacheWrite: countIn(usage, 'cache_creation_input_tokens'),
  output: countIn(usage, 'output_tokens'),
})

/** It was cut off: a reply of several parts is several lines, each with the numbers of the whole, as far as they were known. */
function tokensOfReplies(events: readonly Fields[]): TokensTold {
  const replies = new Map<unknown, TokensTold>()
  for (const event of events) {
    if (event['type'] !== 'assistant') continue
    const message = fieldsIn(event['message'])
    replies.set(message['id'], tokensOf(fieldsIn(message['usage'])))
  }
  return [...replies.values()].reduce(add, NONE)
}
