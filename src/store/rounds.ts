import { invariant } from '../base/errors.ts'
import { begun, isSingle } from './transition.ts'
import type { Answer, Ask, Change, Joint, Transition, Query, Values } from './transition.ts'

/** What a likely statement is taken to have answered. */
const AS_LIKELY: Answer = { rows: [], changes: 1 }

export type AnyChange = Change<readonly unknown[], unknown>

/** One transition under way: what it asks next, and what it returned. */
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
    let step = result
    while (step.done !== true && this.#all.mayGoOn(step.value)) step = this.#transition.next(this.#all.ask(step.value))
    this.next = step.done === true ? undefined : step.value
    if (step.done === true) this.value = step.value
  }
}

/** Rows for joint statements, in the order in which those were first asked. */
export type Gathered = ReadonlyMap<Joint, Values>

/** What nobody waits for. */
interface Ahead {
  /** What returns something. */
  readonly telling: readonly Query<unknown>[]
  readonly silent: Gathered
}

/**
 * Transitions of one commit, side by side: in each round the next statement of every one of them is asked. Safety rests on the
 * guards in the statements, not on who comes first, so they may interleave; if any fails, none of them happened.
 */
export class Rounds {
  /** Likely statements are taken to have been answered, and asked with whatever comes next. */
  readonly #isHopeful: boolean
  /** Not asked yet; nobody waits for the answer. */
  #telling: Query<unknown>[] = []
  #silent = new Map<Joint, Values>()
  readonly #atCommit = new Map<Joint, Values>()
  /** What this process's listeners are told of. */
  readonly topics = new Set<string>()
  /** How many were asked that nobody waits for. */
  #asked = 0
  /** Of each that was added, what is under way, or what it comes to. */
  readonly #members: unknown[] = []
  #open: Drive[] = []
  #ready: readonly Drive[] = []
  readonly #holders = new Map<string, Drive>()
  /** What stands for a row that comes with the commit: it becomes that row. */
  readonly #late = new Map<Query<unknown>, object>()

  constructor(isHopeful: boolean) {
    this.#isHopeful = isHopeful
  }

  /** Whether nobody waits for its answer. */
  mayGoOn({ deferred, given, parts }: Query<unknown>): boolean {
    if (deferred) return true
    if (parts !== undefined) return parts.every((part) => this.mayGoOn(part))
    return this.#isHopeful && given?.joint.likely === true
  }

  /** One more, before the first round; returns how many statements it begins with. */
  add(change: AnyChange, args: readonly unknown[]): number {
    const before = this.#asked
    const value = this.#isHopeful && !isSingle(change) ? change.foresee?.(this.#ask, ...args) : undefined
    const asked = value === undefined ? this.#drive(change, args) : 0
    if (value !== undefined) this.#members.push(value)
    return this.#asked - before + asked
  }

  #drive(change: AnyChange, args: readonly unknown[]): number {
    const drive = new Drive(begun(change, args), this)
    this.#members.push(drive)
    if (drive.next === undefined) return 0
    this.#open.push(drive)
    return drive.next.parts?.length ?? 1
  }

  /** Asks what nobody waits for, and says what it is taken to have answered. */
  ask(query: Query<unknown>): unknown {
    if (query.parts !== undefined) return query.parts.map((part) => this.ask(part))
    if (query.topic !== undefined) this.topics.add(query.topic)
    const { joint, values } = query.given!
    if (query.deferred || joint.returns === undefined) {
      this.#rows(joint).push(...values)
      return query.read(AS_LIKELY)
    }
    return this.#standIn(query)
  }

  #standIn(query: Query<unknown>): object {
    this.#asked += 1
    this.#telling.push(query)
    const row = {}
    this.#late.set(query, row)
    return row
  }

  #rows(joint: Joint): Values {
    this.#asked += 1
    const gathered = joint.atCommit === true ? this.#atCommit : this.#silent
    let rows = gathered.get(joint)
    if (rows === undefined) gathered.set(joint, (rows = []))
    return rows
  }

  readonly #ask: Ask = {
    rows: (joint) => {
      const isSilent = joint.likely === true && joint.returns === undefined
      invariant(joint.atCommit === true || isSilent, 'nobody waits for what is foreseen')
      return this.#rows(joint)
    },
    row: <T extends object>(query: Query<T | undefined>) => {
      invariant(query.given?.joint.likely === true, 'nobody waits for what is foreseen')
      return this.#standIn(query) as T
    },
    tell: (topic) => void this.topics.add(topic),
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
  takeAhead(): Ahead {
    const ahead = { telling: this.#telling, silent: this.#silent }
    if (ahead.telling.length > 0) this.#telling = []
    if (ahead.silent.size > 0) this.#silent = new Map()
    return ahead
  }

  /** To be asked at the commit. */
  get deferred(): Gathered {
    return this.#atCommit
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
    asked.forEach((query, at) => {
      const row = query.read(answers[at]!)
      invariant(row !== undefined, 'a row that is likely to be returned was not')
      Object.assign(this.#late.get(query)!, row)
    })
  }

  values(): readonly unknown[] {
    return this.#members.map((member) => (member instanceof Drive ? member.value : member))
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
