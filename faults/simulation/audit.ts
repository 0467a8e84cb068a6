import { actionsOfRun } from '../../src/actions/action.ts'
import type { Action } from '../../src/actions/action.ts'
import { eventsAfter } from '../../src/events/event.ts'
import type { Event } from '../../src/events/event.ts'
import { attemptsOf } from '../../src/runs/attempt.ts'
import type { Run } from '../../src/runs/run.ts'
import { row, text } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { all, single } from '../../src/store/transition.ts'
import { entriesOfRun } from '../../src/threads/conversation.ts'

const MOST_EVENTS = 100_000

const homes = single(() => all(row({ id: text(), home: text() }), sql`select id, home from workers`))

/**
 * What the log says about the order of things, against the promises: it is written by the same commits, so nothing that
 * was done too late can hide in it.
 */
export async function wrongOrder(store: Store, runs: readonly Run[]): Promise<string[]> {
  const events = Map.groupBy(await store.read(eventsAfter, 0, MOST_EVENTS), ({ runId }) => runId)
  const homeOf = new Map((await store.read(homes)).map(({ id, home }) => [id, home]))
  const wrong: string[] = []
  for (const run of runs) {
    const attempts = new Map((await store.read(attemptsOf, run.id)).map(({ number, workerId }) => [number, workerId]))
    const begun = begunIn(events.get(run.id) ?? [], (attempt) => homeOf.get(attempts.get(attempt) ?? ''))
    wrong.push(...begun.flatMap(({ cancelled, id }) => (cancelled ? [`begun after its run was cancelled: ${id}`] : [])))
    const actions = await store.read(actionsOfRun, run.id)
    wrong.push(...actions.flatMap((action) => wrongHolder(action, begun)), ...askedTwice(actions))
    wrong.push(...(await wrongTurns(store, run)))
  }
  return wrong
}

interface Begun {
  readonly id: string
  /** Where who held the run then has its home. */
  readonly home: string | undefined
  readonly cancelled: boolean
}

function begunIn(events: readonly Event[], homeOf: (attempt: number) => string | undefined): Begun[] {
  const begun: Begun[] = []
  let home: string | undefined
  let cancelled = false
  for (const { type, data } of events) {
    if (type === 'run.started' || type === 'run.taken_over') home = homeOf(Number(data.attempt))
    if (type === 'run.cancel_requested') cancelled = true
    if (type === 'action.started') begun.push({ id: String(data.actionId), home, cancelled })
  }
  return begun
}

/** A worker that lost its claim began it all the same. Of one that was repeated without an event nobody knows by whom. */
function wrongHolder({ id, tries, home }: Action, begun: readonly Begun[]): string[] {
  const mine = begun.filter((each) => each.id === id)
  const last = mine.at(-1)
  if (last === undefined || mine.length !== tries || last.home === home) return []
  return [`begun by a worker that had lost the run: ${id}`]
}

/** No model of these worlds wants the same thing twice: a reply was recorded twice. */
function askedTwice(actions: readonly Action[]): string[] {
  const calls = actions.map(({ tool, input }) => `${tool} ${JSON.stringify(input)}`)
  return calls.filter((call, index) => calls.indexOf(call) < index).map((call) => `wanted twice: ${call}`)
}

/** After a reply that wants nothing done, a model is asked again only when it was told something new. */
const isLast = ({ toolCalls }: Readonly<Record<string, unknown>>) => !Array.isArray(toolCalls) || toolCalls.length === 0

/** Each reply is paid for once, and each message is in the conversation once. */
async function wrongTurns(store: Store, { id, costMicrousd, input }: Run): Promise<string[]> {
  if (input !== null) return []
  const entries = await store.read(entriesOfRun, id)
  const replies = entries.filter(({ kind }) => kind === 'assistant').length
  const shown = entries.flatMap(({ body }) => (typeof body.messageId === 'string' ? [body.messageId] : []))
  const answers = entries.filter(
    ({ kind, body }, index) => kind === 'assistant' && isLast(body) && entries[index + 1]?.kind === 'assistant',
  )
  return [
    ...answers.map(() => `${id} answered twice`),
    ...(costMicrousd === replies ? [] : [`${id} has ${replies} replies and paid for ${costMicrousd}`]),
    ...(new Set(shown).size === shown.length ? [] : [`a message was shown twice in ${id}`]),
  ]
}
