import type { Shown } from './look.ts'
import type { Model } from './model.ts'

const iso = (instant: number) => new Date(instant).toISOString()
const byId = <T extends { readonly id: string }>(items: readonly T[]) =>
  items.toSorted((a, b) => (a.id < b.id ? -1 : 1))

/** What a person is asked, what nobody knows about, and all calls. */
const deskOf = (model: Model) => ({
  approvals: model.actions
    .filter(({ approval }) => approval === 'pending')
    .map(({ id, runId: of, expiresAt }) => ({
      actionId: id,
      runId: of,
      state: 'pending',
      expiresAt: iso(expiresAt),
    })),
  doubts: model.actions
    .filter(({ state, isGivenUp }) => state === 'in_doubt' && isGivenUp !== true)
    .map(({ id, tries }) => ({ id, tries })),
  actions: byId(model.actions).map(({ id, runId: of, state, repeatOf }) => ({ id, runId: of, state, repeatOf })),
})

/** What the doors should give, of what the model speaks of; of the log what came after the first `told` of it. */
export function expected(model: Model, { runId }: Shown, told: number) {
  const pending = (threadId: string) =>
    model.messages.filter((message) => message.threadId === threadId && message.state === 'pending').length
  return {
    runs: model.runs.toReversed().map((run) => ({
      id: run.id,
      threadId: run.threadId,
      agent: run.agent,
      state: run.state,
      attempt: run.attempt,
      code: run.code,
      parkedFor: run.parkedFor,
      isCancelled: run.isCancelled,
      parent: run.parent,
    })),
    threads: byId(model.threads.filter(({ state }) => state === 'open')).map(
      ({ id, agent, state, generation, parentId }) => ({
        id,
        agent,
        state,
        generation,
        parentId,
        pending: pending(id),
      }),
    ),
    messages: model.messages.toReversed().map(({ id, threadId, from, kind, key, state, reason, consumedByRun }) => ({
      id,
      threadId: threadId,
      from: from,
      kind,
      key,
      state,
      reason,
      consumedByRun: consumedByRun,
    })),
    ...deskOf(model),
    schedules: byId(model.schedules).map(({ id, name, state, nextAt, firings, failures }) => ({
      id: id,
      name,
      state,
      nextAt: nextAt === undefined ? undefined : iso(nextAt),
      firings,
      failures,
    })),
    occurrences: byId(model.occurrences).map(({ id, state, runId: led }) => ({
      id: id,
      state,
      runId: led,
    })),
    attempts:
      runId === undefined
        ? undefined
        : model.attempts
            .filter((attempt) => attempt.runId === runId)
            .map(({ id, workerId, outcome }) => ({
              id: id,
              workerId: workerId,
              outcome: outcome,
            })),
    events: model.log.slice(told).map(([type, threadId, of]) => ({ type, threadId: threadId, runId: of })),
  }
}
