/**
 * What Holdfast is supposed to do, said once more and as simply as possible: plain lists, no database, nothing of ours. Each
 * verb answers with a word, changes the lists, and tells of it in the order in which the log does.
 */

export const LEASE_MS = 15_000
export const APPROVAL_MS = 20_000
export const DELAY_MS = 1_000
type Texts<Name extends string> = Record<Name, string>
type Perhaps<Name extends string> = Partial<Record<Name, string | undefined>>
type Row<Text extends string, May extends string, Count extends string> = Texts<Text | 'id'> &
  Perhaps<May> &
  Record<Count, number>
type Thread = Row<'agent' | 'state', 'parentId', 'generation' | 'createdAt'>
type Asked = Row<'threadId' | 'agent', 'asked' | 'key' | 'parent', 'priority'>
type Attempted = Row<'kind' | 'state', 'parkedFor' | 'code', 'attempt' | 'fence' | 'createdAt'>
type Run = Asked & Attempted & { isCancelled: boolean; endedAt?: number }
export type Attempt = Row<'runId' | 'workerId', 'outcome', 'fence' | 'leaseUntil'> & { isReleased: boolean }
type News = Row<'threadId' | 'key' | 'kind', never, never> & { from: string | null }
type Message = News & Row<'state', 'reason' | 'delivery' | 'consumedByRun', 'generation' | 'createdAt'>
/** A tool call; those of one run with the same signature are the same thing, and happen once if their tool says so. */
type Call = Row<'signature', never, never> & { isOnce: boolean }
/** `approval`: what a person is asked about it. */
type Performed = Row<'runId' | 'threadId' | 'state', 'approval' | 'repeatOf', 'tries' | 'expiresAt'>
export type Action = Call & Performed & { isGivenUp?: boolean }
type Schedule = Row<'name' | 'state', never, 'firings' | 'failures'> & { nextAt: number | undefined }
type Occurrence = Row<'schedule' | 'state', 'runId', never>
type Concluded = 'done' | 'failed' | 'in_doubt'
type Ending = 'succeeded' | 'failed' | 'cancelled'
type Told = readonly [type: string, threadId?: string | undefined, runId?: string | undefined]
const OPEN = ['queued', 'running', 'parked']
const WAITING = ['pending', 'leased']
const ALIVE = ['active', 'paused']
const UNBEGUN = ['waiting', 'approved']
const UNUSED: unknown[] = ['pending', 'approved']
const BEGUN = ['started', 'done', 'in_doubt']
export class Model {
  now = 0
  readonly threads: Thread[] = []
  readonly runs: Run[] = []
  readonly attempts: Attempt[] = []
  readonly messages: Message[] = []
  readonly actions: Action[] = []
  readonly schedules: Schedule[] = []
  readonly occurrences: Occurrence[] = []
  readonly log: Told[] = []
  readonly #noes: Action[] = []

  run = (id: string): Run => this.runs.find((run) => run.id === id)!
  thread = (id: string): Thread | undefined => this.threads.find((thread) => thread.id === id)
  readonly #tell = (...told: Told) => void this.log.push(told)
  readonly #tellOf = (type: string, { threadId, runId }: Action) => this.#tell(type, threadId, runId)
  readonly #did = (word: string, row: object, changes: object, ...told: Told) => {
    Object.assign(row, changes)
    this.#tell(...told)
    return word
  }
  readonly #settle = (action: Action, state: string, repeatOf?: string) =>
    void this.#did('', action, { state, repeatOf }, 'action.settled', action.threadId, action.runId)
  /** Whose claim it is: only the newest attempt at a run that is running may change anything. */
  readonly #holds = ({ runId, fence }: Attempt) =>
    this.run(runId).state === 'running' && this.run(runId).fence === fence
  readonly #alike = (action: Action) =>
    this.actions.filter(({ runId, signature }) => runId === action.runId && signature === action.signature)
  /** The one that a call is answered from, where it is done once. */
  readonly #original = (action: Action) =>
    this.#alike(action).find(
      (each) => each.isOnce && each !== action && BEGUN.includes(each.state) && each.repeatOf === undefined,
    )
  readonly #pending = (of: string) => this.messages.filter((each) => each.threadId === of && each.state === 'pending')
  readonly active = (of: string): Run | undefined =>
    this.runs.find((run) => run.threadId === of && OPEN.includes(run.state))

  open(id: string, agent: string, parentId?: string): Thread {
    const known = this.thread(id)
    if (known?.state === 'open') return known
    const thread = known ?? { id, agent, state: 'open', generation: 0, createdAt: this.now }
    if (known === undefined) this.threads.push(thread)
    Object.assign(thread, { agent, state: 'open', generation: thread.generation + 1, parentId, createdAt: this.now })
    this.#tell('thread.created', id)
    return thread
  }

  submit(asked: Asked): string {
    const known = asked.key === undefined ? undefined : this.runs.find(({ key }) => key === asked.key)
    if (known !== undefined) return known.asked === asked.asked ? 'existing' : 'conflict'
    this.open(asked.threadId, asked.agent, asked.parent)
    this.#queue(asked, 'command')
    return 'submitted'
  }
  readonly #queue = (asked: Asked, kind: 'command' | 'agent'): void => {
    this.runs.push({ ...asked, kind, state: 'queued', attempt: 0, fence: 0, createdAt: this.now, isCancelled: false })
    this.#tell('run.queued', asked.threadId, asked.id)
  }

  /** The most important, then the first, of threads on which nobody is at work. */
  claim(workerId: string, attemptId: string): string {
    const isBusy = ({ threadId }: Run) =>
      this.runs.some((run) => run.threadId === threadId && (run.state === 'running' || run.state === 'parked'))
    const waiting = this.runs.filter((run) => run.state === 'queued' && !isBusy(run))
    const run = waiting.toSorted((a, b) => b.priority - a.priority)[0]
    if (run === undefined) return 'nothing'
    run.state = 'running'
    return this.#begin(run, workerId, attemptId, 'run.started')
  }
  readonly #begin = (run: Run, workerId: string, id: string, told: string): string => {
    Object.assign(run, { fence: run.fence + 1, attempt: run.attempt + 1 })
    const { id: runId, fence, threadId } = run
    this.attempts.push({ id, runId, fence, workerId, leaseUntil: this.now + LEASE_MS, isReleased: false })
    this.#tell(told, threadId, runId)
    return runId
  }
  readonly renew = (workerId: string): string => {
    const mine = this.attempts.filter((each) => each.workerId === workerId && !each.outcome && !each.isReleased)
    for (const attempt of mine) attempt.leaseUntil = this.now + LEASE_MS
    return String(mine.length)
  }

  finish(attempt: Attempt, ending: Ending): string {
    const run = this.run(attempt.runId)
    if (!this.#holds(attempt) || (ending === 'cancelled' && !run.isCancelled)) return `reconciled ${run.state}`
    const isLate = run.isCancelled && ending !== 'cancelled'
    if (isLate) this.#tell('run.late_result', undefined, run.id)
    this.#end(run, isLate ? 'cancelled' : ending, attempt)
    return isLate ? 'reconciled cancelled' : `finished ${ending}`
  }
  readonly #end = (run: Run, ending: Ending, attempt?: Attempt): void => {
    Object.assign(run, { state: ending, endedAt: this.now, code: ending === 'failed' ? 'exit' : undefined })
    if (attempt !== undefined) attempt.outcome = ending
    for (const action of this.actions.filter(({ runId }) => runId === run.id)) this.#withdraw(action)
    const isTaken = this.messages.some(({ consumedByRun }) => consumedByRun === run.id)
    // What it was started for has its answer with it; after a cancel only what was asked, not the news of others.
    if (run.kind === 'agent' && ending !== 'succeeded' && !isTaken)
      this.consume(run, ({ kind }) => ending === 'failed' || kind === 'prompt')
    this.#settleFiring(run)
    if (run.parent !== undefined) this.#tellParent(run, run.parent)
    this.#tell('run.finished', run.threadId, run.id)
  }
  readonly consume = (run: Run, isTaken: (message: Message) => boolean = () => true): string => {
    for (const message of this.#pending(run.threadId).filter(isTaken))
      this.#did('', message, { state: 'consumed', consumedByRun: run.id }, 'message.consumed', run.threadId, run.id)
    return 'taken'
  }

  park(attempt: Attempt, parkedFor: string): string {
    const run = this.run(attempt.runId)
    if (!this.#holds(attempt) || run.isCancelled) return 'refused'
    attempt.outcome = 'parked'
    return this.#did('parked', run, { state: 'parked', parkedFor }, 'run.parked', run.threadId, run.id)
  }
  readonly resume = (run: Run): string => {
    if (run.state !== 'parked') return 'nothing'
    return this.#did('resumed', run, { state: 'queued', parkedFor: undefined }, 'run.resumed', run.threadId, run.id)
  }

  cancel(run: Run): string {
    if (!OPEN.includes(run.state)) return 'already-terminal'
    if (run.isCancelled) return 'requested'
    this.#did('', run, { isCancelled: true }, 'run.cancel_requested', run.threadId, run.id)
    if (run.state === 'running') return 'requested'
    this.#end(run, 'cancelled')
    return 'cancelled'
  }

  takeOver(held: Attempt, ground: 'owner-dead' | 'lease-over' | 'released', workerId: string, id: string): string {
    const grounds = { 'owner-dead': true, 'lease-over': held.leaseUntil < this.now, released: held.isReleased }
    if (!this.#holds(held) || held.outcome !== undefined || !grounds[ground]) return 'nothing'
    held.outcome = 'superseded'
    return this.#begin(this.run(held.runId), workerId, id, 'run.taken_over')
  }
  readonly handOver = (attempt: Attempt): string => {
    if (attempt.outcome !== undefined || attempt.isReleased) return 'false'
    const changes = { isReleased: true, leaseUntil: this.now }
    return this.#did('true', attempt, changes, 'run.handed_over', undefined, attempt.runId)
  }

  send(id: string, threadId: string, key: string, runId: string): string {
    const { generation } = this.open(threadId, 'clerk')
    const message = this.#accept({ id, threadId, from: null, kind: 'prompt', key }, generation)
    if (message.state !== 'pending') return `${message.id} ${message.state} ${message.consumedByRun ?? '-'}`
    return `${message.id} pending ${this.wake(threadId, runId)}`
  }
  readonly #accept = (message: News, generation: number, about?: string): Message => {
    const { threadId, key } = message
    const isKnown = (each: Message) => each.threadId === threadId && each.generation === generation && each.key === key
    const known = this.messages.find(isKnown)
    if (known !== undefined) return known
    const stored: Message = { ...message, generation, state: 'pending', createdAt: this.now }
    this.messages.push(stored)
    this.#tell('message.accepted', threadId, about)
    return stored
  }

  /** The run that sees to what waits in a thread: one that is there, or a new one. */
  wake(threadId: string, runId: string): string {
    const active = this.active(threadId)
    if (active !== undefined) return active.id
    if (this.#pending(threadId).length === 0) return '-'
    this.#queue({ id: runId, threadId, agent: this.thread(threadId)!.agent, priority: 0 }, 'agent')
    return runId
  }

  /** Threads with something that nobody is at work on. News that was there when the last run was cancelled asks for none. */
  idle(): string[] {
    const asks = ({ kind, createdAt, threadId }: Message) => {
      const last = this.runs.findLast((run) => run.threadId === threadId)
      return kind === 'prompt' || kind === 'notice' || last?.state !== 'cancelled' || createdAt > last.endedAt!
    }
    const isIdle = ({ id, state, agent }: Thread) =>
      state === 'open' && agent === 'clerk' && this.active(id) === undefined && this.#pending(id).some(asks)
    const idle = this.threads.filter(isIdle)
    return idle.map(({ id }) => id).toSorted()
  }
  readonly #tellParent = (run: Run, parent: string): void => {
    const recipient = this.thread(parent)!
    const kind = run.state === 'failed' ? 'error' : 'completion'
    const news = { id: `msg_${run.id}`, threadId: parent, from: run.threadId, kind, key: `run:${run.id}` } as const
    const message = this.#accept(news, recipient.generation, run.id)
    const isLater = recipient.generation > 1 && run.createdAt < recipient.createdAt
    if (recipient.state === 'removed' || isLater) this.#bury(message)
  }
  /** A dead letter, of which its sender hears if it is there. */
  readonly #bury = (message: Message): void => {
    Object.assign(message, { state: 'dead', reason: 'recipient removed', delivery: undefined })
    this.#tell('message.dead', message.threadId)
    const sender = message.from === null ? undefined : this.thread(message.from)
    if (sender?.state !== 'open' || message.kind === 'notice') return
    const notice = { id: `msg_dead_${message.id}`, threadId: sender.id, from: null, kind: 'notice' } as const
    this.#accept({ ...notice, key: `dead:${message.id}` }, sender.generation)
  }

  lease(delivery: string, threadId: string, most: number): string {
    const leased = this.#pending(threadId).slice(0, most)
    for (const message of leased) Object.assign(message, { state: 'leased', delivery })
    if (leased.length > 0) this.#tell('message.leased', threadId)
    return leased.map(({ id }) => id).join(' ')
  }
  /** What somebody has: it was seen, or it waits again. */
  readonly endDelivery = (delivery: string, isSeen: boolean): string => {
    const held = this.messages.filter((each) => each.delivery === delivery && each.state === 'leased')
    const changes = isSeen ? { state: 'consumed' } : { state: 'pending', delivery: undefined }
    for (const message of held) Object.assign(message, changes)
    const told = isSeen ? held.map(() => 'message.consumed') : held.slice(0, 1).map(() => 'message.returned')
    for (const type of told) this.#tell(type, held[0]!.threadId)
    return String(held.length)
  }

  remove(threadId: string): string {
    const thread = this.thread(threadId)
    if (thread === undefined) return 'unknown'
    if (thread.state === 'removed') return 'already-removed'
    if (this.active(threadId) !== undefined) return 'busy'
    const left = this.messages.filter((each) => each.threadId === threadId && WAITING.includes(each.state))
    thread.state = 'removed'
    for (const message of left) this.#bury(message)
    for (const child of this.threads) if (child.parentId === threadId) child.parentId = undefined
    this.#tell('thread.removed', threadId)
    return `removed ${left.length}`
  }

  propose(call: Call, { runId }: Attempt, isAsked: boolean): string {
    const state = isAsked ? 'waiting' : 'approved'
    const action = { ...call, runId, threadId: this.run(runId).threadId, state, tries: 0, expiresAt: 0 }
    this.actions.push(action)
    this.#tellOf('action.proposed', action)
    if (isAsked) this.#ask(action)
    return action.state
  }
  /** Nobody is asked about what will not be done, nor again about what had a no. */
  readonly #ask = (action: Action): void => {
    const [original, alike] = [this.#original(action), this.#alike(action)]
    if (original !== undefined && original.state !== 'started') return this.#repeat(action, original)
    const no = this.#noes.findLast((each) => alike.includes(each))
    if (no !== undefined) return this.#settle(action, no.state, no.id)
    Object.assign(action, { approval: 'pending', expiresAt: this.now + APPROVAL_MS })
    this.#tellOf('approval.requested', action)
  }
  readonly #repeat = (action: Action, { id, state }: Action): void => {
    if (!UNBEGUN.includes(action.state)) return
    if (UNUSED.includes(action.approval)) action.approval = 'withdrawn'
    this.#settle(action, state === 'done' ? 'done' : 'failed', id)
  }
  /** Its run ended. Who had begun one that was to be done again may still do it. */
  readonly #withdraw = (action: Action): void => {
    if (UNUSED.includes(action.approval)) action.approval = 'withdrawn'
    if (UNBEGUN.includes(action.state) && action.tries > 0) this.#settle(action, 'in_doubt')
    else if (UNBEGUN.includes(action.state)) action.state = 'withdrawn'
  }

  /** For exactly what was shown, once, in time. */
  decide(action: Action, state: 'approved' | 'denied' | 'skipped', isOther: boolean): string {
    if (action.approval === 'pending' && isOther) return 'changed'
    if (action.approval !== 'pending' || action.expiresAt <= this.now) return 'too-late'
    Object.assign(action, { state, approval: state })
    if (state !== 'approved') this.#noes.push(action)
    if (state !== 'approved') this.#settle(action, state)
    this.#tellOf('approval.decided', action)
    this.#decided(action.runId)
    return 'decided'
  }
  /** Whoever waits for it goes on: its run or, if that has ended, the next one on its thread. */
  readonly #decided = (runId: string): void => {
    const { threadId, endedAt } = this.run(runId)
    const isMeant = (each: Run) => each.id === runId || (endedAt !== undefined && each.threadId === threadId)
    const waits = (each: Run) => each.state === 'parked' && each.parkedFor === 'a decision'
    for (const run of this.runs.filter((each) => waits(each) && isMeant(each))) this.resume(run)
  }

  expire(): string {
    const over = this.actions.filter((each) => UNUSED.includes(each.approval) && each.expiresAt <= this.now)
    for (const action of over) {
      action.approval = 'expired'
      if (UNBEGUN.includes(action.state)) this.#settle(action, 'expired')
      this.#tellOf('approval.expired', action)
      this.#decided(action.runId)
    }
    return String(over.length)
  }

  /** By whoever has the run, once for a signature, with a yes to exactly this; a second try needs no new one. */
  start(attempt: Attempt, action: Action, isOther: boolean): string {
    const { state, approval, tries, expiresAt } = action
    const original = action.isOnce ? this.#original(action) : undefined
    const failures = this.#alike(action).filter((each) => each.state === 'failed' && each.tries > 0)
    const isYes = approval === 'consumed' || (approval === 'approved' && expiresAt > this.now)
    const isAllowed = approval === undefined || (isYes && !isOther)
    if (original !== undefined) this.#repeat(action, original)
    else if (state === 'approved' && failures.length >= 3) this.#settle(action, 'failed')
    else if (state === 'approved' && !isAllowed) this.#settle(action, isOther ? 'denied' : 'expired')
    else if (state === 'approved' && this.#holds(attempt) && !this.run(attempt.runId).isCancelled) {
      Object.assign(action, { state: 'started', tries: tries + 1, approval: approval && 'consumed' })
      this.#tellOf('action.started', action)
    }
    return action.state === 'started' && state === 'approved' ? 'started' : 'not started'
  }

  /** What its tool says of this try; of one that was given up too, but not that nobody knows; that it is done also where others said otherwise. */
  conclude(action: Action, tries: number, state: Concluded): string {
    const isDone = state === 'done' && tries > 0 && (action.state !== 'failed' || this.run(action.runId).endedAt)
    const open: unknown[] = ['started', state !== 'in_doubt' && 'in_doubt', ...(isDone ? ['approved', 'failed'] : [])]
    if (!open.includes(action.state) || action.tries !== tries) return action.state
    if (action.state === 'in_doubt') this.#decided(action.runId)
    this.#settle(action, state)
    return state
  }

  /** A person says of a doubt what it is; or that it is to be done again, or that nobody will ever know. */
  resolve(action: Action, state: Concluded | 'approved'): string {
    if (action.state !== 'in_doubt') return 'not-in-doubt'
    if (state === 'approved' && this.run(action.runId).endedAt !== undefined) return 'run-ended'
    if (action.isGivenUp) return 'not-in-doubt'
    this.#tellOf('doubt.resolved', action)
    if (state === 'done' || state === 'failed') this.#settle(action, state)
    Object.assign(action, { state, isGivenUp: state === 'in_doubt' })
    this.#decided(action.runId)
    return 'resolved'
  }

  schedule(id: string, name: string): string {
    if (this.schedules.some((each) => each.name === name && ALIVE.includes(each.state))) return 'taken'
    this.schedules.push({ id, name, state: 'active', nextAt: this.now + DELAY_MS, firings: 0, failures: 0 })
    this.#tell('schedule.created')
    return 'added'
  }
  readonly steer = (schedule: Schedule, state: 'paused' | 'active'): string => {
    if (!ALIVE.includes(schedule.state)) return 'over'
    if (schedule.state === state) return 'already'
    const word = state === 'paused' ? 'paused' : 'resumed'
    return this.#did(word, schedule, { state }, `schedule.${word}`)
  }

  fire(schedule: Schedule, threadId: string, runId: string): string {
    const { state, nextAt, firings } = schedule
    if (state !== 'active' || nextAt === undefined) return 'lost'
    if (nextAt > this.now) return 'not-due'
    this.occurrences.push({ id: `${schedule.id}.${nextAt}`, schedule: schedule.id, state: 'dispatched', runId })
    this.open(threadId, 'command')
    this.#queue({ id: runId, threadId, agent: 'command', priority: 0 }, 'command')
    const changes = { nextAt: undefined, firings: firings + 1 }
    return this.#did('fired', schedule, changes, 'occurrence.dispatched', threadId, runId)
  }
  readonly unschedule = (schedule: Schedule): string => {
    const { state, nextAt, id } = schedule
    if (state === 'removed') return 'already'
    if (nextAt !== undefined && nextAt <= this.now) {
      this.occurrences.push({ id: `${id}.${nextAt}`, schedule: id, state: 'skipped' })
      this.#tell('occurrence.settled')
    }
    return this.#did('removed', schedule, { state: 'removed', nextAt: undefined }, 'schedule.ended')
  }
  readonly #settleFiring = ({ id, threadId, state }: Run): void => {
    const firing = this.occurrences.find((each) => each.runId === id && each.state === 'dispatched')
    if (firing === undefined) return
    const schedule = this.schedules.find((each) => each.id === firing.schedule)!
    firing.state = state === 'succeeded' ? 'succeeded' : 'failed'
    schedule.failures = state === 'succeeded' ? 0 : schedule.failures + 1
    this.#tell('occurrence.settled', threadId, id)
    if (schedule.state !== 'removed') this.#did('', schedule, { state: 'ended' }, 'schedule.ended')
  }
}
