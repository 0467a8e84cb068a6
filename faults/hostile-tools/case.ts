import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { newRunId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId } from '../../src/base/ids.ts'
import { attemptsOf } from '../../src/runs/attempt.ts'
import { findRun, isTerminal } from '../../src/runs/run.ts'
import type { Run } from '../../src/runs/run.ts'
import { submitRun } from '../../src/runs/submit.ts'
import { commandFolder } from '../../src/workers/home.ts'
import type { Outcome } from '../method.ts'
import type { Plan } from './plan.ts'
import { Starvation, peakOf, supervisorsIn, survivorsOf } from './survivors.ts'
import { GRACE_MS } from './yard.ts'
import type { Yard } from './yard.ts'

const TOOL = new URL('hostile.sh', import.meta.url).pathname
/** The promise: so long after it was asked for, and after the grace that it gives, no process is left. */
const STOPPED_MS = 5_000
/** However long our processes waited for a processor: after so many times the promise it is broken. */
const HOPELESS = 2
const ANSWER_MS = 2_000
/** Head and tail, and 64 MiB of each stream in the run's folder, and a little. */
const MOST_DISK_MIB = 2 * 64 + 8
const MOST_MEMORY_MIB = 256
/** However busy the machine is: what takes longer never ends. */
const PATIENCE_MS = 120_000

const timeoutOf = ({ ending, afterMs }: Plan) => (ending === 'timeout' ? 300 + afterMs : undefined)

/** One command in its yard, as long as it lasts. */
class Trial {
  readonly yard: Yard
  readonly plan: Plan
  readonly id: RunId = newRunId(random)
  readonly token = `hostile-${random.hex(12)}`
  readonly place: string
  readonly problems: string[] = []
  /** What has happened to it, not what was planned. */
  readonly faults: Record<string, number> = {}
  memoryMiB = 0
  #supervisor = 0

  constructor(yard: Yard, plan: Plan) {
    this.yard = yard
    this.plan = plan
    this.place = join(yard.folder, this.token)
    mkdirSync(this.place)
    spawnSync('mkfifo', [join(this.place, 'never')])
  }

  happened(...kinds: readonly string[]): void {
    for (const kind of kinds) this.faults[kind] = (this.faults[kind] ?? 0) + 1
  }

  async submit(): Promise<void> {
    const argv = [TOOL, this.token, this.place, ...this.plan.tricks] as const
    const env = { PATH: process.env['PATH'] ?? '' }
    const timeoutMs = timeoutOf(this.plan)
    const request = {
      kind: 'command',
      argv,
      cwd: '/',
      env,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    } as const
    await this.yard.store.apply(submitRun, { id: this.id, threadId: newThreadId(random), agent: 'command', request })
  }

  async run(): Promise<Run> {
    const run = await this.yard.store.read(findRun, this.id)
    if (run === undefined) throw new Error('the run is gone')
    return run
  }

  get left(): string[] {
    return survivorsOf(this.token, join(this.place, 'held'))
  }

  async folder(): Promise<string | undefined> {
    const [attempt] = await this.yard.store.read(attemptsOf, this.id)
    return attempt === undefined ? undefined : commandFolder(this.yard.home, attempt.mark)
  }

  /** Its supervisor, once there is one, and what it took of memory so far. */
  async supervisor(): Promise<number> {
    const folder = await this.folder()
    if (this.#supervisor === 0 && folder !== undefined) this.#supervisor = supervisorsIn(folder)[0]?.pid ?? 0
    this.memoryMiB = Math.max(this.memoryMiB, peakOf(this.#supervisor))
    return this.#supervisor
  }
}

export async function play(seed: number, plan: Plan, yard: Yard): Promise<Outcome> {
  const trial = new Trial(yard, plan)
  const { problems } = trial
  const broke = (error: unknown) => void problems.push(`broke off: ${String(error)}`)
  const seen = await act(trial).catch(broke)
  await clear(trial).catch(broke)
  const peaks = {
    'ms until the last process was gone': seen?.recoveryMs ?? 0,
    'ms until the daemon answered': Math.round(yard.slowestMs),
    'MiB of memory of a supervisor': Math.round(trial.memoryMiB),
    'MiB of output on disk': Math.round(seen?.diskMiB ?? 0),
  }
  const told = problems.length === 0 ? [] : [...problems, JSON.stringify(plan)]
  const recovery = seen === undefined ? {} : { recoveryMs: seen.recoveryMs }
  return { seed, faults: trial.faults, runs: 1, effects: 0, ...recovery, peaks, problems: told }
}

async function act(trial: Trial): Promise<{ readonly recoveryMs: number; readonly diskMiB: number }> {
  await trial.submit()
  await moment(trial)
  const { recoveryMs, isCancelled } = await stop(trial)
  const run = await until('its run ends', async () => {
    const now = await trial.run()
    return isTerminal(now.state) ? now : undefined
  })
  const diskMiB = mebibytes(await trial.folder())
  count(trial, run)
  judge(trial, run, diskMiB, isCancelled)
  return { recoveryMs, diskMiB }
}

/** The tricks that it came to, and what it was stopped by. */
function count(trial: Trial, { state, code }: Run): void {
  const { place, plan } = trial
  const begun = join(place, 'begun')
  if (existsSync(begun)) trial.happened(...readFileSync(begun, 'utf8').split('\n').filter(Boolean))
  if (existsSync(join(place, 'held'))) trial.happened(`contained by ${plan.containment}`)
  if (state === 'cancelled') trial.happened('cancelled')
  if (code === 'timeout') trial.happened('timeout')
}

async function until<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 15))
  }
}

/** The instant at which it is to be stopped. */
async function moment(trial: Trial): Promise<void> {
  const { from, afterMs, ending } = trial.plan
  const isSoFar = async () => (await trial.supervisor()) > 0 && existsSync(join(trial.place, 'away'))
  const isClaimed = async () => (await trial.run()).state !== 'queued'
  const early = from === 'its claim' && ending !== 'supervisor killed' && ending !== 'timeout'
  // A timeout may come first, and so may its end.
  await until('it has begun', async () =>
    (await (early ? isClaimed() : isSoFar())) || isTerminal((await trial.run()).state) ? true : undefined,
  )
  await new Promise((resolve) => setTimeout(resolve, afterMs))
}

interface Stop {
  readonly recoveryMs: number
  /** That it is to be cancelled was acknowledged; undefined: nobody asked for it. */
  readonly isCancelled: boolean | undefined
}

/**
 * Stops it, and says how long it took until no process was left, from the instant in which it was asked for. The promise does not count
 * what our processes waited for a processor that others had.
 */
async function stop(trial: Trial): Promise<Stop> {
  const { yard, plan } = trial
  if (plan.ending === 'daemon killed') await withoutDaemon(trial)
  const supervisor = await trial.supervisor()
  const asked = performance.now()
  const starvation = new Starvation([yard.pid, supervisor])
  if (plan.ending === 'supervisor killed' && supervisor > 0 && kill(supervisor)) trial.happened('supervisor killed')
  const isCancelled = ['cancelled', 'daemon killed'].includes(plan.ending) ? await cancel(trial) : undefined
  const allowedMs = STOPPED_MS + GRACE_MS + (timeoutOf(plan) ?? 0)
  const isInTime = (ms: number) => ms - starvation.ms < allowedMs && ms < allowedMs * HOPELESS
  let { left } = trial
  while (left.length > 0 && isInTime(performance.now() - asked)) {
    await new Promise((resolve) => setTimeout(resolve, 25))
    starvation.watch(await trial.supervisor(), 0)
    left = trial.left
  }
  // Whoever looks may have waited for a processor, too: what counts is who is there now.
  if (left.length > 0) left = trial.left
  if (left.length > 0)
    trial.problems.push(`still there ${STOPPED_MS / 1_000} s after it was stopped: ${left.join('; ')}`)
  return { recoveryMs: Math.round(performance.now() - asked), isCancelled }
}

/** Whether its daemon was killed while it was under way is what counts. */
async function withoutDaemon(trial: Trial): Promise<void> {
  await trial.yard.kill()
  if (!isTerminal((await trial.run()).state)) trial.happened('daemon killed')
  await trial.yard.start()
}

/** Whether it is acknowledged: one that has ended by itself cannot be cancelled any more. */
async function cancel({ yard, id }: Trial): Promise<boolean> {
  try {
    await yard.api.call('runs.cancel', { run: id })
    return true
  } catch (error) {
    if (!String(error).includes('has ended already')) throw error
    return false
  }
}

function kill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch {
    // It has just ended.
    return false
  }
}

/** What each way to be stopped may end as; one that was quicker than that ended by itself. */
const ENDS: Readonly<Record<Plan['ending'], readonly string[]>> = {
  cancelled: ['cancelled'],
  'daemon killed': ['cancelled'],
  timeout: ['failed timeout'],
  'supervisor killed': ['failed lost', 'failed killed'],
}

/** Who leaves may have left first, unless it was acknowledged that it is to be cancelled; who was not in time has ended by itself. */
function endsOf({ ending, tricks }: Plan, isCancelled: boolean | undefined): readonly string[] {
  if (isCancelled === true) return ENDS[ending]
  const byItself = tricks.includes('leaves') ? ['succeeded'] : []
  return isCancelled === false ? byItself : [...ENDS[ending], ...byItself]
}

function judge(trial: Trial, run: Run, diskMiB: number, isCancelled: boolean | undefined): void {
  const { plan, yard, problems, memoryMiB } = trial
  const end = run.code === null ? run.state : `${run.state} ${run.code}`
  if (!endsOf(plan, isCancelled).includes(end)) problems.push(`it ended as ${end}: ${run.error}`)
  // Whatever was said while it ended, nothing may begin after that.
  const { left } = trial
  if (left.length > 0) problems.push(`its run has ended, and is still there: ${left.join('; ')}`)
  if (diskMiB > MOST_DISK_MIB) problems.push(`its output took ${Math.round(diskMiB)} MiB on disk`)
  if (memoryMiB > MOST_MEMORY_MIB) problems.push(`its supervisor took ${Math.round(memoryMiB)} MiB of memory`)
  if (yard.slowestMs > ANSWER_MS) problems.push(`the daemon took ${Math.round(yard.slowestMs)} ms to answer`)
  problems.push(...yard.unanswered.splice(0).map((error) => `the daemon did not answer: ${error}`))
}

/** What is removed while we look takes nothing. */
function mebibytes(folder: string | undefined): number {
  if (folder === undefined || !existsSync(folder)) return 0
  const blocks = (name: string) => statSync(join(folder, name), { throwIfNoEntry: false })?.blocks ?? 0
  return readdirSync(folder).reduce((sum, name) => sum + blocks(name) / 2_048, 0)
}

/** Whatever we promise: what is left of it goes before the next one comes. */
async function clear(trial: Trial): Promise<void> {
  writeFileSync(join(trial.place, 'landed'), '')
  for (const line of trial.left) kill(Number(line.split(' ')[0]))
  const folder = await trial.folder()
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  rmSync(trial.place, { recursive: true, force: true, maxRetries: 5 })
}
