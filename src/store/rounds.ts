import type { Answer, Query, Transition } from './transition.ts'

/** What a likely statement is taken to have answered. */
const AS_LIKELY: Answer = { rows: [], changes: 1 }

const isLikely = ({ given, parts }: Query<unknown>): boolean =>
  parts === undefined ? given?.joint.likely === true : parts.every(isLikely)

/** One transition under way: what it asks next, what it has put off until the commit, what it returned. */
class Drive {
  readonly #transition: Transition<unknown>
  readonly #all: Rounds
  next: Query<unknown> | undefined
  value: unknown

  constructor(transition: Transition<unknown>, all: Rounds) {
    this.#transition = transition
    this.#all = all
    this.#take(transition.next())
  }

  advance(answers: readonly Answer[], from: number): void {
    const { parts } = this.next!
    const answer =
      parts === undefined
        ? this.next!.read(answers[from]!)
        : parts.map((part, place) => part.read(answers[from + place]!))
    this.#take(this.#transition.next(answer))
  }

  #take(result: IteratorResult<Query<unknown>, unknown>): void {
    const { ahead, deferred, isHopeful } = this.#all
    let step = result
    for (; step.done !== true;) {
      const query = step.value
      if (query.deferred) {
        deferred.push(query)
        step = this.#transition.next(undefined)
      } else if (isHopeful && isLikely(query)) {
        for (const part of query.parts ?? [query]) ahead.push(part)
        step = this.#transition.next(query.parts?.map((part) => part.read(AS_LIKELY)) ?? query.read(AS_LIKELY))
      } else break
    }
    this.next = step.done === true ? undefined : step.value
    if (step.done === true) this.value = step.value
  }
}

/**
 * Transitions of one commit, side by side: in each round the next statement of every one of them is asked. Safety rests on the
 * guards in the statements, not on who comes first, so they may interleave; if any fails, none of them happened.
 */
export class Rounds {
  /** Whether likely statements are taken to have been answered, and asked with whatever comes next. */
  readonly isHopeful: boolean
  /** Not asked yet; nobody waits for the answer. */
  ahead: Query<unknown>[] = []
  /** To be asked at the commit. */
  readonly deferred: Query<unknown>[] = []
  readonly #drives: Drive[] = []
  #open: readonly Drive[] = this.#drives
  #ready: readonly Drive[] = []
  readonly #holders = new Map<string, Drive>()

  constructor(isHopeful: boolean) {
    this.isHopeful = isHopeful
  }

  /** One more, before the first round; returns how many statements it begins with. */
  add(transition: Transition<unknown>): number {
    const before = this.ahead.length + this.deferred.length
    const drive = new Drive(transition, this)
    this.#drives.push(drive)
    const asked = drive.next === undefined ? 0 : (drive.next.parts?.length ?? 1)
    return this.ahead.length + this.deferred.length - before + asked
  }

  /** The statements of the next round; undefined when all are over, but for what is ahead and what is deferred. */
  next(): readonly Query<unknown>[] | undefined {
    this.#open = this.#open.filter(({ next }) => next !== undefined)
    if (this.#open.length === 0) return undefined
    this.#ready = this.#open.filter((drive) => this.#mayGo(drive))
    // Two of them wait for each other: as in the database itself, they are told apart by running again, one by one.
    if (this.#ready.length === 0) throw new Error('members of a batch wait for each other')
    const asked: Query<unknown>[] = []
    for (const { next } of this.#ready) {
      if (next!.parts === undefined) asked.push(next!)
      else asked.push(...next!.parts)
    }
    return asked
  }

  /** What was ahead is asked before the round. */
  takeAhead(): readonly Query<unknown>[] {
    const { ahead } = this
    if (ahead.length > 0) this.ahead = []
    return ahead
  }

  answer(answers: readonly Answer[]): void {
    let from = 0
    for (const drive of this.#ready) {
      const asked = drive.next!.parts?.length ?? 1
      drive.advance(answers, from)
      from += asked
    }
  }

  values(): readonly unknown[] {
    return this.#drives.map(({ value }) => value)
  }

  topics(): ReadonlySet<string> {
    const topics = new Set<string>()
    for (const { topic } of this.deferred) if (topic !== undefined) topics.add(topic)
    return topics
  }

  /** A row lock keeps other transactions out, and no member of this one: for those it is kept here. */
  #mayGo(drive: Drive): boolean {
    const lock = drive.next?.lock
    if (lock === undefined) return true
    const holder = this.#holders.get(lock)
    if (holder !== undefined && holder !== drive && holder.next !== undefined) return false
    this.#holders.set(lock, drive)
    return true
  }
}
