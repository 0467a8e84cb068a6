import { LIMITS } from '../../base/limits.ts'
import { PRESETS } from '../../clients/preset.ts'
import type { ClientTurn, Printed } from '../../clients/turn.ts'
import { costMicrousd, priceOf } from '../../model/prices.ts'
import type { OutputText } from '../../processes/command.ts'
import { readWholeOutput } from '../../processes/output.ts'
import type { Claim } from '../../runs/claim.ts'
import { beginAnew } from '../../runs/command-turn.ts'
import type { ToldTurn } from '../../runs/command-turn.ts'
import type { Outcome } from '../../runs/finish.ts'
import type { ClientRequest, CommandRequest, Run, Usage } from '../../runs/run.ts'
import { threadOf } from '../../sessions/events.ts'
import { keptSession } from '../../sessions/kept.ts'
import type { SessionTotals, TokensTold } from '../../sessions/kept.ts'
import type { Store } from '../../store/store.ts'
import { findThread } from '../../threads/thread.ts'

/** What is left of what it printed. */
interface Ended {
  readonly stdout: OutputText
  readonly stderr: OutputText
}

export interface TurnPorts {
  readonly store: Store
  /** A store that is full or busy is waited for. */
  readonly stored: <T>(write: () => Promise<T>) => Promise<T>
}

type Turn = CommandRequest & { readonly client: ClientRequest }

/**
 * What the turn of a client comes to, by what it printed. Undefined: nothing yet, the session that it was to go on with is gone,
 * and the run begins a new one.
 */
export async function concludeTurn(
  { store, stored }: TurnPorts,
  { run, attempt }: Claim,
  request: Turn,
  { outcome, printed }: { readonly outcome: Outcome; readonly printed: Printed },
): Promise<Outcome | undefined> {
  const told = PRESETS[request.client.name].read(printed)
  if (told.isGone && request.client.orElse !== undefined && outcome.state === 'failed' && outcome.code === 'exit') {
    const ref = { id: attempt.id, runId: run.id, fence: run.fence }
    if (await stored(() => store.apply(beginAnew, ref))) return undefined
  }
  const before = await stored(() => totalsBefore(store, run, request.client))
  return outcomeOf(request.client, outcome, told, before)
}

/** The whole of what it printed, if its end has only head and tail. */
export async function printedIn(folder: string, { stdout, stderr }: Ended): Promise<Printed> {
  const whole = async (name: 'stdout' | 'stderr', text: OutputText) =>
    text.truncated ? ((await readWholeOutput(folder, name)) ?? `${text.head}\n${text.tail}`) : text.head + text.tail
  return { stdout: await whole('stdout', stdout), stderr: await whole('stderr', stderr) }
}

async function totalsBefore(store: Store, { threadId, agent }: Run, client: ClientRequest): Promise<SessionTotals> {
  const generation = (await store.read(findThread, threadId))?.generation ?? 1
  const kept = await store.read(keptSession, { threadId, generation, agent })
  return kept?.sessionId === client.session ? (kept?.totals ?? {}) : {}
}

const NONE: TokensTold = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }

/** A count that went back began anew: then it is what it says. */
const since = (now: number, before: number) => (now >= before ? now - before : now)

const tokensSince = (now: TokensTold, before: TokensTold): TokensTold => ({
  input: since(now.input, before.input),
  cacheRead: since(now.cacheRead, before.cacheRead),
  cacheWrite: since(now.cacheWrite, before.cacheWrite),
  output: since(now.output, before.output),
})

interface Spent {
  readonly tokens: TokensTold
  readonly usage: Usage
  readonly totals: SessionTotals
}

/** What this turn took, also where the client counts from the begin of its session. */
function spentIn({ vendor, price }: ClientRequest, told: ClientTurn, before: SessionTotals): Spent {
  const { sessionTokens, sessionCostUsd, model } = told
  const counted = sessionTokens === undefined ? NONE : tokensSince(sessionTokens, before.tokens ?? NONE)
  const tokens = told.tokens ?? counted
  const paid = sessionCostUsd === undefined ? undefined : since(sessionCostUsd, before.costUsd ?? 0)
  const costUsd = told.costUsd ?? paid
  const listed = () => costMicrousd(price ?? (model === undefined ? undefined : priceOf(`${vendor}/${model}`)), tokens)
  return {
    tokens,
    usage: {
      inputTokens: tokens.input + tokens.cacheRead + tokens.cacheWrite,
      outputTokens: tokens.output,
      // What is a hair above a whole number is so by the arithmetic alone.
      costMicrousd: costUsd === undefined ? listed() : Math.ceil(costUsd * 1_000_000 - 1e-3),
    },
    totals: {
      ...before,
      ...(sessionTokens === undefined ? {} : { tokens: sessionTokens }),
      ...(sessionCostUsd === undefined ? {} : { costUsd: sessionCostUsd }),
    },
  }
}

function outcomeOf(client: ClientRequest, outcome: Outcome, told: ClientTurn, before: SessionTotals): Outcome {
  const { tokens, usage, totals } = spentIn(client, told, before)
  const words = textOf(client, told)
  const neverBegan = outcome.state === 'failed' && outcome.code === 'spawn'
  const id = told.isGone || neverBegan ? undefined : (told.sessionId ?? client.session)
  const result = {
    text: words,
    ...(id === undefined ? {} : { session: { client: client.name, id, ...replaced(client) } }),
    ...(told.model === undefined ? {} : { model: told.model }),
    tokens,
    ...restOf(outcome.result, told),
  }
  const turn: ToldTurn = {
    client: client.name,
    steps: told.steps.slice(-LIMITS.toldSteps),
    isOver: told.isOver,
    ...(neverBegan && client.isNew === true && client.session !== undefined ? { neverBegun: client.session } : {}),
    ...(id === undefined ? {} : { session: { id, totals }, heardAs: threadOf(client.name, id) }),
  }
  const said = outcome.state === 'cancelled' ? {} : { reply: words, summary: words.slice(-LIMITS.summaryCharacters) }
  return { ...verdictOf(outcome, told), result, usage, told: turn, ...said }
}

const replaced = ({ insteadOf }: ClientRequest) => (insteadOf === undefined ? {} : { insteadOf })

/** Its last words; what it printed that is not its language is not lost, and stands in for them where there are none. */
function textOf({ insteadOf }: ClientRequest, { reply, strays }: ClientTurn): string {
  const words = (reply ?? strays).trim()
  if (insteadOf === undefined) return words
  return `(The session ${insteadOf} is gone: this is the answer of a new one, which was shown what had been said before.)\n\n${words}`
}

/** Of what it printed, only what was not understood: the rest is in the steps. */
function restOf(result: unknown, { isOver, strays }: ClientTurn): object {
  const { stdout, text: _, ...rest } = (result ?? {}) as { readonly stdout?: unknown; readonly text?: unknown }
  return isOver && strays === '' ? rest : { ...rest, stdout }
}

/** A stop of ours, and a death, are what they are; how the client itself says that it failed tells more than its status. */
function verdictOf(outcome: Outcome, { failure, trouble }: ClientTurn): Outcome {
  if (outcome.state === 'succeeded' && failure !== undefined) return { state: 'failed', ...failure }
  if (outcome.state !== 'failed') return { state: outcome.state }
  const { code, error } = outcome
  if (code === 'exit' && failure !== undefined) return { state: 'failed', ...failure }
  return { state: 'failed', code, error: trouble === undefined ? error : `${error}; it had trouble: ${trouble}` }
}
