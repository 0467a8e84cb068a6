import { sleep } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import type { Randomness } from '../../base/ids.ts'
import { LIMITS } from '../../base/limits.ts'
import { lastEventSeq } from '../../events/event.ts'
import { forgetEvents, looseAfter, looseEvents } from '../../events/retention.ts'
import { judgeProcess } from '../../processes/identity.ts'
import { BEGINNING, forgetRuns, oldRuns, readRecorded } from '../../runs/retention.ts'
import type { Cut, OldRun, Place } from '../../runs/retention.ts'
import { forgetWorkers, silentWorkers, stopWorker } from '../../runs/worker.ts'
import { forgetOccurrences } from '../../schedule/retention.ts'
import type { Store } from '../../store/store.ts'
import { forgetMessages, forgetThreads, oldThreads } from '../../threads/retention.ts'
import { forgetActs } from '../../tokens/act.ts'
import { Archive } from './archive.ts'

export interface ForgetOptions {
  readonly store: Store
  readonly clock: Clock
  readonly random: Randomness
  readonly cut: Cut
  readonly actsMs?: number
  /** What was settled in the ledger of schedules. */
  readonly occurrencesMs?: number | undefined
  /** The folder of the archive: what goes is there first. */
  readonly archive?: string
  /** Counts, and removes nothing. */
  readonly dry?: boolean
  /** Of the time, how much it may take: transactions are short, and between them others go on. */
  readonly share: number
  /** Nobody rests any more. */
  readonly signal?: AbortSignal
  /** Asked before each step; false: another does it now, the clock may be wrong, or this process ends. */
  readonly mayGoOn: (step: Step) => Promise<boolean>
}

/** `look` changes nothing; `tidy` is what any daemon may do at the same time, on the word of the clock; `remove` is done by one. */
export type Step = 'look' | 'tidy' | 'remove'

export interface Forgotten {
  runs: number
  events: number
  threads: number
  acts: number
  /** Runs that are old enough and still needed. */
  held: number
}

/** One pass over what is old: runs with everything of theirs, events without a run, threads of which nothing is left, who did what. */
export async function forgetHistory(options: ForgetOptions): Promise<Forgotten> {
  const counts: Forgotten = { runs: 0, events: 0, threads: 0, acts: 0, held: 0 }
  await passRuns(options, counts)
  await passEvents(options, counts)
  if (options.dry !== true) {
    const { store, actsMs = LIMITS.actsKeptMs, occurrencesMs } = options
    await untilNone(options, () => store.apply(forgetMessages, LIMITS.forgetTogether))
    await untilNone(options, () => store.apply(forgetOccurrences, LIMITS.forgetTogether, occurrencesMs))
    counts.acts = await untilNone(options, () => store.apply(forgetActs, LIMITS.forgetTogether, actsMs))
  }
  await passThreads(options, counts)
  if (options.dry !== true) await passWorkers(options)
  return counts
}

/** One that was killed never said that it stopped: whoever is on its machine sees that it is gone, and after a long time it is gone anywhere. */
async function passWorkers(options: ForgetOptions): Promise<void> {
  const { store, cut } = options
  let after = { startedAt: 0, id: '' }
  for (;;) {
    const look = () => store.read(silentWorkers, cut.runsMs, after, LIMITS.forgetLooked)
    // That one which cannot be seen is gone is as final as what is removed.
    const silent = await paced(options, look, 'tidy')
    const last = silent?.at(-1)
    if (silent === undefined) return
    if (last === undefined) break
    after = last
    for (const { id, identity, isUnseen } of silent) {
      const verdict = judgeProcess(identity)
      if (verdict === 'dead' || (verdict === 'unreachable' && isUnseen === 1)) await store.apply(stopWorker, id)
    }
  }
  await untilNone(options, () => store.apply(forgetWorkers, LIMITS.forgetTogether, cut.runsMs))
}

/** Does `work` and rests as long as the share says; undefined: it may not. */
async function paced<T>(options: ForgetOptions, work: () => Promise<T>, step: Step = 'look'): Promise<T | undefined> {
  const { clock, share, signal, mayGoOn } = options
  if (!(await mayGoOn(step))) return undefined
  const from = clock.monotonicMs()
  const done = await work()
  const rest = (clock.monotonicMs() - from) * (1 / share - 1)
  if (rest >= 1) await sleep(clock, rest, signal)
  return done
}

/** Children before those that started them, so a pass that removed some is followed by another. */
async function passRuns(options: ForgetOptions, counts: Forgotten): Promise<void> {
  for (let again = true; again;) {
    const before = counts.runs
    counts.held = 0
    if (!(await passRunsOnce(options, counts))) return
    again = counts.runs > before && counts.held > 0 && options.dry !== true
  }
}

async function passRunsOnce(options: ForgetOptions, counts: Forgotten): Promise<boolean> {
  const { store, cut } = options
  let after: Place = BEGINNING
  for (;;) {
    const seen = await paced(options, () => store.read(oldRuns, cut, after, LIMITS.forgetLooked))
    const last = seen?.at(-1)
    if (seen === undefined || last === undefined) return seen !== undefined
    after = last
    const going = seen.filter(({ mayGo }) => mayGo)
    counts.held += seen.length - going.length
    for (const batch of batches(going)) {
      const gone = await paced(options, () => forgetBatch(options, batch), 'remove')
      if (gone === undefined) return false
      counts.runs += gone
      counts.held += batch.length - gone
    }
  }
}

/** So many runs that their events are no more than one transaction should remove; one run is never taken apart. */
function* batches(runs: readonly OldRun[]): Generator<readonly OldRun[]> {
  let [batch, events] = [[] as OldRun[], 0]
  for (const run of runs) {
    if (batch.length > 0 && events + run.events > LIMITS.forgetTogether) {
      yield batch
      ;[batch, events] = [[], 0]
    }
    batch.push(run)
    events += run.events + 1
  }
  if (batch.length > 0) yield batch
}

/** Runs whose rows are read together on their way into the archive. */
const READ_TOGETHER = 20

async function forgetBatch(options: ForgetOptions, batch: readonly OldRun[]): Promise<number> {
  const { store, cut, archive, dry } = options
  if (dry === true) return batch.length
  if (archive === undefined) return (await store.apply(forgetRuns, batch, cut)).length
  const file = new Archive({ ...options, folder: archive })
  let [archived, gone] = [[] as OldRun[], 0]
  const remove = async () => {
    await file.close()
    gone += (await store.apply(forgetRuns, archived, cut)).length
    archived = []
  }
  for (let from = 0; from < batch.length; from += READ_TOGETHER) {
    const some = batch.slice(from, from + READ_TOGETHER)
    file.add(
      await store.read(
        readRecorded,
        some.map(({ id }) => id),
      ),
    )
    archived.push(...some)
    if (file.isFull) await remove()
  }
  if (archived.length > 0) await remove()
  return gone
}

async function passEvents(options: ForgetOptions, counts: Forgotten): Promise<void> {
  const { store, cut, archive, dry } = options
  // What it says itself of what it forgot is for another time.
  const { seq: end } = await store.read(lastEventSeq)
  let counted = 0
  while (counted < end) {
    const span = await paced(options, () =>
      dry === true
        ? store.read(looseAfter, counted, cut.runsMs, LIMITS.forgetTogether)
        : store.read(looseEvents, cut.runsMs, LIMITS.forgetTogether),
    )
    if (span === undefined) return
    counted = span.to
    const remove = async () => {
      if (dry === true) return span.events.length
      await keepEvents(options, archive, span.events)
      return store.apply(forgetEvents, span, cut.runsMs)
    }
    const gone = await paced(options, remove, 'remove')
    if (gone === undefined) return
    counts.events += gone
  }
}

async function keepEvents(
  options: ForgetOptions,
  folder: string | undefined,
  events: readonly object[],
): Promise<void> {
  if (folder === undefined || events.length === 0) return
  const file = new Archive({ ...options, folder })
  file.add(events.map((record) => ({ table: 'events', record: { ...record } })))
  await file.close()
}

async function passThreads(options: ForgetOptions, counts: Forgotten): Promise<void> {
  const { store, cut, dry } = options
  let after = { createdAt: 0, id: '' }
  for (;;) {
    const seen = await paced(options, () => store.read(oldThreads, cut.runsMs, after, LIMITS.forgetLooked))
    const last = seen?.at(-1)
    if (seen === undefined || last === undefined) return
    after = last
    const empty = seen.filter(({ isEmpty }) => isEmpty === 1).map(({ id }) => id)
    if (empty.length === 0) continue
    const remove = async () => (dry === true ? empty.length : store.apply(forgetThreads, empty, cut.runsMs))
    const gone = await paced(options, remove, 'remove')
    if (gone === undefined) return
    counts.threads += gone
  }
}

/** A heartbeat removes a few of these; after a busy day there are more. */
async function untilNone(options: ForgetOptions, remove: () => Promise<number>): Promise<number> {
  for (let all = 0; ;) {
    const gone = await paced(options, remove, 'tidy')
    all += gone ?? 0
    if (gone === undefined || gone === 0) return all
  }
}
