import { Query } from './transition.ts'
import type { Answer, Transition } from './transition.ts'

/** What a likely statement is taken to have answered. */
const AS_LIKELY: Answer = { rows: [], changes: 1 }

/** What stands for a row that comes with the commit: there is one, and nothing of it is known. */
const LATER: object = Object.freeze({})

/** It returns something. */
export const isTelling = ({ given }: Query<unknown>): boolean => given?.joint.returns !== undefined

const readLikely = (query: Query<unknown>): unknown => (isTelling(query) ? LATER : query.read(AS_LIKELY))

/** One transition under way: what it asks next, what it has put off until the commit, what it returned. */
class Drive {
  readonly #start: () => Transition<unknown>
  readonly #transition: Transition<unknown>
  readonly #all: Rounds
  /** What it was told, one after the other, or what was asked ahead for it. */
  readonly #told: (Answer | Query<unknown>)[] = []
  #isLate = false
  next: Query<unknown> | undefined
  #value: unknown

  constructor(start: () => Transition<unknown>, all: Rounds) {
    this.#start = start
    this.#transition = start()
    this.#all = all
    this.#take(this.#transition.next())
  }

  advance(answers: readonly Answer[], from: number): void {
    const { parts } = this.next!
    for (let at = from; at < from + (parts?.length ?? 1); at++) this.#told.push(answers[at]!)
    const answer =
      parts === undefined
        ? this.next!.read(answers[from]!)
        : parts.map((part, place) => part.read(answers[from + place]!))
    this.#take(this.#transition.next(answer))
  }

  /** What it returned. Where some of that came with the commit, it runs again, and is told the same and that: nothing is asked. */
  value(late: ReadonlyMap<Query<unknown>, Answer>): unknown {
    if (!this.#isLate) return this.#value
    const told = this.#told.map((each) => (each instanceof Query ? (late.get(each) ?? AS_LIKELY) : each)).values()
    const read = (query: Query<unknown>) => query.read(told.next().value!)
    const transition = this.#start()
    let step = transition.next()
    while (step.done !== true) {
      const { deferred, parts } = step.value
      step = transition.next(deferred ? undefined : (parts?.map(read) ?? read(step.value)))
    }
    return step.value
  }

  #take(result: IteratorResult<Query<unknown>, unknown>): void {
    const { deferred } = this.#all
    let step = result
    for (; step.done !== true;) {
      const query = step.value
      if (query.deferred) {
        deferred.push(query)
        step = this.#transition.next(undefined)
      } else if (!this.#all.mayGoOn(query)) break
      else if (query.parts === undefined) {
        this.#askAhead(query)
        step = this.#transition.next(readLikely(query))
      } else {
        for (const part of query.parts) this.#askAhead(part)
        step = this.#transition.next(query.parts.map(readLikely))
      }
    }
    this.next = step.done === true ? undefined : step.value
    if (step.done === true) this.#value = step.value
  }

  #askAhead(query: Query<unknown>): void {
    this.#all.ahead.push(query)
    this.#told.push(query)
    this.#isLate ||= isTelling(query)
  }
}

/** Which likely statements are taken to have been answered, and asked with whatever comes next; `silent`: those that return nothing. */
type Hope = 'none' | 'silent' | 'all'

/**
 * Transitions of one commit, side by side: in each round the next statement of every one of them is asked. Safety rests on the
 * guards in the statements, not on who comes first, so they may interleave; if any fails, none of them happened.
 */
export class Rounds {
  readonly #hope: Hope
  /** Not asked yet; nobody waits for the answer. */
  ahead: Query<unknown>[] = []
  /** To be asked at the commit. */
  readonly deferred: Query<unknown>[] = []
  readonly #drives: Drive[] = []
  #open: readonly Drive[] = this.#drives
  #ready: readonly Drive[] = []
  readonly #holders = new Map<string, Drive>()
  readonly #late = new Map<Query<unknown>, Answer>()

  constructor(hope: Hope) {
    this.#hope = hope
  }

  /** Whether it is likely, so that nobody waits for its answer. */
  mayGoOn({ given, parts }: Query<unknown>): boolean {
    if (parts !== undefined) return parts.every((part) => this.mayGoOn(part))
    if (this.#hope === 'none' || given?.joint.likely !== true) return false
    return this.#hope === 'all' || given.joint.returns === undefined
  }

  /** One more, before the first round; returns how many statements it begins with. */
  add(start: () => Transition<unknown>): number {
    const before = this.ahead.length + this.deferred.length
    const drive = new Drive(start, this)
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

  /** What was asked ahead, and returns something, was answered. */
  hear(asked: readonly Query<unknown>[], answers: readonly Answer[]): void {
    asked.forEach((query, at) => this.#late.set(query, answers[at]!))
  }

  values(): readonly unknown[] {
    return this.#drives.map((drive) => drive.value(this.#late))
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
