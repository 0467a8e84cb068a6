import { actionsOfRun } from '../../src/actions/action.ts'
import { approvalsOfRun, findApproval } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { newMessageId, newRunId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ActionId, RunId } from '../../src/base/ids.ts'
import { isTerminal, runRow } from '../../src/runs/run.ts'
import type { Run } from '../../src/runs/run.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { submitRun } from '../../src/runs/submit.ts'
import type { Store } from '../../src/store/store.ts'
import { among, sql } from '../../src/store/sql.ts'
import { all, single } from '../../src/store/transition.ts'
import { violations } from '../../test/support/invariants.ts'
import { until } from '../../test/support/until.ts'
import type { Outcome } from '../method.ts'
import { Dice } from '../simulation/seeded.ts'
import { accountOf, survivorsOf, unallowed } from './account.ts'
import type { Said } from './account.ts'
import type { AgentName } from './agents.ts'
import type { Yard } from './yard.ts'

/** However noisy the machine: what has not settled then never will. */
const SETTLES_MS = 60_000

const MANY = 8

/** Their dice are not those of what goes wrong: how often they are asked depends on the machine. */
const PEOPLE = 0x9e3779b9

const AGENT_NAMES: readonly AgentName[] = ['plain', 'keyed', 'probed', 'careful', 'conductor']

/** What an approval may be after its answer. */
const AFTER: Readonly<Record<Said, readonly string[]>> = { approve: ['approved', 'consumed'], deny: ['denied'] }

/** These, and what they started. */
const withChildren = single((ids: readonly RunId[]) =>
  all(runRow, sql`select * from runs where id in ${among(ids)} or parent_run_id in ${among(ids)} order by seq`),
)

/** One case: what it set going in its yard, who was killed, and what is not as it should be. */
export class Scene {
  readonly yard: Yard
  readonly seed: number
  readonly dice: Dice
  readonly problems: string[] = []
  /** What was acknowledged: it has to be there, and to come to its end. */
  readonly runs: RunId[] = []
  /** The line that each command writes. */
  readonly entries = new Map<RunId, string>()
  /** A supervisor was killed: what it did may be unknown. */
  mayBeUnknown = false
  /** The daemon dies with that supervisor, unless that came to its end before. */
  mayDieTogether = false
  readonly #faults: Record<string, number> = {}
  /** What people want to answer, and what they heard that they had. */
  readonly #answers = new Map<string, Said>()
  readonly #heard = new Map<string, Said>()
  readonly #people: Dice
  #lastKill: number | undefined
  #settledAt: number | undefined
  #effects = 0
  #allRuns = 0

  constructor(yard: Yard, seed: number) {
    this.yard = yard
    this.seed = seed
    this.dice = new Dice(seed)
    this.#people = new Dice(seed ^ PEOPLE)
  }

  /** Somebody was killed; `at` is the time of day, where that is known better. */
  killed(what: string, at = Date.now()): void {
    this.#faults[what] = (this.#faults[what] ?? 0) + 1
    this.#lastKill = Math.max(this.#lastKill ?? 0, at)
  }

  /** Whether the daemon has died with its supervisor; on a busy machine that takes a while. */
  async notice(): Promise<boolean> {
    if (!this.mayDieTogether || this.yard.isUp) return false
    this.mayDieTogether = false
    this.killed('daemon together with a supervisor')
    const { signal, code, stderr } = await this.yard.daemon.ended
    if (signal !== 'SIGKILL') this.complain(`the daemon ended by itself (${signal ?? code}): ${stderr.slice(-600)}`)
    return true
  }

  complain(problem: string): void {
    this.problems.push(problem)
  }

  /** Some work for the daemon; now and then more than it does at a time. */
  async begin(jobs = this.dice.chance(0.1) ? MANY : 1 + this.dice.below(3)): Promise<void> {
    await this.yard.withStore(async (store) => {
      for (let job = 0; job < jobs; job++) {
        if (this.dice.chance(0.4)) await this.command(store, `c${this.seed}.${job}`, this.dice.below(150))
        else await this.agent(store, this.dice.pick(AGENT_NAMES))
      }
    })
  }

  async command(store: Store, entry: string, ms: number): Promise<RunId> {
    const id = newRunId(random)
    const request = { kind: 'command', argv: this.yard.entry(entry, ms), cwd: '/' } as const
    await store.apply(submitRun, { id, threadId: newThreadId(random), agent: 'command', request })
    this.runs.push(id)
    this.entries.set(id, entry)
    return id
  }

  async agent(store: Store, agent: AgentName): Promise<RunId> {
    const ids = { messageId: newMessageId(random), runId: newRunId(random), threadId: newThreadId(random) }
    await store.apply(sendMessage, { ...ids, agent, text: 'write', key: ids.messageId })
    this.runs.push(ids.runId)
    return ids.runId
  }

  /** An agent that waits for a person: the approvals that it asks for. */
  async waiting(): Promise<readonly string[]> {
    return this.yard.withStore(async (store) => {
      const id = await this.agent(store, 'careful')
      return until(
        `${id} waits for a person`,
        async () => {
          const asked = await store.read(approvalsOfRun, id)
          return asked.length > 0 ? asked.map((approval) => approval.id) : undefined
        },
        SETTLES_MS,
      )
    })
  }

  /** A quarter of the answers are no; nobody changes his mind. */
  answerTo(id: string): Said {
    const answer = this.#answers.get(id) ?? (this.#people.chance(0.25) ? 'deny' : 'approve')
    this.#answers.set(id, answer)
    return answer
  }

  /** A person answers, and hears that it was heard. */
  async answer(store: Store, id: string): Promise<void> {
    const asked = await store.read(findApproval, id)
    if (asked === undefined) return this.complain(`${id} was asked for and is gone`)
    const answer = { kind: this.answerTo(id), by: 'a person', via: 'test', digest: asked.digest } as const
    const { kind } = await store.apply(decideApproval, id, answer)
    if (kind === 'decided') this.heard(id)
  }

  /** Somebody heard that the answer was heard. */
  heard(id: string): void {
    this.#heard.set(id, this.answerTo(id))
  }

  /** What must be true at every moment, whoever has just died. */
  async look(): Promise<void> {
    await this.yard.withStore(async (store) => {
      this.problems.push(...(await violations(store)))
      this.problems.push(...(await store.check()))
    })
  }

  /** Until all of it has come to its end, with somebody who answers whatever is asked. */
  async settle(): Promise<void> {
    await this.yard.withStore(async (store) => {
      const settled = async () => {
        if (await this.notice()) await this.yard.up()
        const open = (await store.read(withChildren, this.runs)).filter(({ state }) => !isTerminal(state))
        for (const { id } of open) await this.#answer(store, id)
        return open.length === 0 ? true : undefined
      }
      await until('its runs have ended', settled, SETTLES_MS).catch(() => this.#complainOfOpen(store))
      this.#settledAt = Date.now()
      await this.#check(store)
    })
  }

  async #answer(store: Store, id: RunId): Promise<void> {
    for (const { id: approval, state } of await store.read(approvalsOfRun, id))
      if (state === 'pending') await this.answer(store, approval)
  }

  async #complainOfOpen(store: Store): Promise<void> {
    for (const run of await store.read(withChildren, this.runs))
      if (!isTerminal(run.state)) this.complain(`${run.id} never ended: ${run.state} ${run.parkedFor ?? ''}`)
  }

  async #check(store: Store): Promise<void> {
    const runs = await store.read(withChildren, this.runs)
    const actions = (await Promise.all(runs.map(({ id }) => store.read(actionsOfRun, id)))).flat()
    const { mayBeUnknown, yard } = this
    const lines = yard.lines()
    this.#allRuns = runs.length
    const said = await this.#said(store)
    const { effects, problems } = accountOf({ known: runs, actions, entries: this.entries, lines, said, mayBeUnknown })
    this.#effects = effects
    this.problems.push(...problems, ...(await unallowed(store, yard.entries, lines)))
    this.problems.push(...(await violations(store)), ...survivorsOf(runs), ...this.#missing(runs))
  }

  /** By action. An answer that was heard is there. */
  async #said(store: Store): Promise<Map<ActionId, Said>> {
    const said = new Map<ActionId, Said>()
    for (const [id, answer] of this.#heard) {
      const approval = await store.read(findApproval, id)
      if (approval === undefined || !AFTER[answer].includes(approval.state))
        this.complain(`the answer to ${id} (${answer}) was lost: ${approval?.state}`)
      if (approval !== undefined) said.set(approval.actionId, answer)
    }
    return said
  }

  #missing(runs: readonly Run[]): string[] {
    return this.runs
      .filter((id) => !runs.some((run) => run.id === id))
      .map((id) => `${id} was acknowledged and is gone`)
  }

  outcome(): Omit<Outcome, 'seed'> {
    const { problems } = this
    const [runs, effects] = [this.#allRuns, this.#effects]
    const recovered = this.#lastKill === undefined || this.#settledAt === undefined
    const recovery = recovered ? {} : { recoveryMs: Math.max(0, this.#settledAt! - this.#lastKill!) }
    return { faults: this.#faults, runs, effects, ...recovery, problems: [...new Set(problems)] }
  }
}
