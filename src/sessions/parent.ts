import { isDeepStrictEqual } from 'node:util'

import type { RunId, ThreadId } from '../base/ids.ts'
import { findRun } from '../runs/run.ts'
import { among, sql } from '../store/sql.ts'
import { all } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { findThread } from '../threads/thread.ts'
import type { Heard } from './events.ts'
import { findSession, sessionKey, sessionRow } from './session.ts'

/**
 * A session's parent is who started its process: a session, or the thread of a run. A plain command has no turns and reads
 * nothing, so what runs below one reports to whoever started that.
 */
export function* parentOf(heard: Heard, own: ThreadId): Transition<ThreadId | null> {
  const { startedFrom, startedBy } = heard
  const around = yield* sessionAround(heard, own)
  if (around !== undefined) return around
  if (startedFrom === undefined || startedFrom === own) return null
  if (startedBy !== undefined && (yield* isTurnOf(startedBy, startedFrom))) return null
  const above = yield* findThread.single(startedFrom)
  if (above?.agent === 'command' && above.parentId !== null) return above.parentId === own ? null : above.parentId
  return startedFrom
}

/**
 * Codex and Gemini CLI give what they start the environment that they were started with, and in it the thread of whoever is around
 * them. So the nearest session above counts, by its process; where that cannot be seen, by the word of Codex. One process of Codex may
 * have several: of those it is the one that Codex names, or else the one last heard of.
 */
function* sessionAround({ above = [], ...heard }: Heard, own: ThreadId): Transition<ThreadId | undefined> {
  const wanted = above.map((process) => JSON.stringify(process))
  const named = heard.codexAround === undefined ? '' : sessionKey('codex', heard.codexAround)
  const sessions =
    wanted.length === 0
      ? []
      : yield* all(
          sessionRow,
          sql`select * from (select sessions.*, row_number() over (partition by process
              order by case when id = ${named} then 0 else 1 end, updated_at desc, id) as place
            from sessions where process in ${among(wanted)} and thread_id <> ${own}) as placed where place = 1`,
        )
  const nearest = above
    .map((each) => sessions.find(({ process }) => isDeepStrictEqual(process, each)))
    .find((session) => session !== undefined)
  return nearest?.threadId ?? (yield* namedAround(heard, own))
}

function* namedAround(heard: Omit<Heard, 'above'>, own: ThreadId): Transition<ThreadId | undefined> {
  const { codexAround, startedFrom, startedBy } = heard
  if (codexAround === undefined) return undefined
  const named = (yield* findSession.single(sessionKey('codex', codexAround)))?.threadId
  if (named === undefined || named === own) return undefined
  // A run takes the names of sessions around it out of its environment: what is there came from within.
  if (startedFrom === undefined || startedBy !== undefined) return named
  return (yield* isBelow(named, startedFrom)) ? named : undefined
}

/** Sessions in sessions; nobody has so many. */
const MOST_LEVELS = 16

function* isBelow(id: ThreadId, above: ThreadId): Transition<boolean> {
  let parent: ThreadId | null | undefined = id
  for (let level = 0; level < MOST_LEVELS && parent != null; level += 1) {
    parent = (yield* findThread.single(parent))?.parentId
    if (parent === above) return true
  }
  return false
}

/** It is the turn of an agent of ours: what it comes to is that run's result, and told to the agent it would begin another. */
function* isTurnOf(runId: RunId, threadId: ThreadId): Transition<boolean> {
  const started = yield* findRun.single(runId)
  return started?.threadId === threadId && started.request.kind === 'command' && started.request.isTurn === true
}
