import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'

import { systemClock } from '../../src/base/clock.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import { attemptsOf } from '../../src/runs/attempt.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import type { Outcome } from '../method.ts'
import { allRuns, isAtRest, storyOf, takeoversFrom, verdictOn } from './check.ts'
import type { Excuses, SelfFence } from './check.ts'
import type { Databases, Place } from './databases.ts'
import type { Begin, WrongClock } from './host.ts'
import type { Host, Hosts } from './hosts.ts'
import { linesOf } from './ledger.ts'
import { askFor, decide, goOf, nothing } from './people.ts'
import { planOf } from './plan.ts'
import type { Plan } from './plan.ts'

const RIGHT: WrongClock = { offsetMs: 0, drift: 0 }
/** After the last fault: what has not come to its end by then never does. */
const REST_MS = 90_000
const LOOK_MS = 40
/** Longer than a worker that was paused is patient. */
const CUT_OFF_LEASES = 1.5
/** So long those that came back go by the clock that was set while they slept. */
const AWAKE_LEASES = 0.7

interface Stopped {
  readonly host: Host
  readonly dies: boolean
}

/** One store, the workers on it, and what they leave behind. */
class Scene {
  readonly plan: Plan
  readonly store: Store
  readonly place: Place
  readonly ledger: string
  readonly promised = nothing()
  readonly faults: Record<string, number> = {}
  readonly problems: string[]
  /** Those that are to begin, and those that have. */
  readonly waiting: readonly Host[]
  readonly hosts: Host[] = []
  readonly stopped: Stopped[] = []
  stoppedAt: number | undefined
  /**
   * From when on everything could go on: the end of the last lease, or, where somebody had to come back first, his return, or, where
   * clocks were wrong, the instant in which they were set right.
   */
  freeAt = 0
  restedAt: number | undefined
  story: readonly string[] = []

  constructor(plan: Plan, store: Store, place: Place, waiting: readonly Host[], problems: string[]) {
    this.problems = problems
    this.waiting = waiting
    this.plan = plan
    this.store = store
    this.place = place
    this.ledger = join(place.folder, 'ledger.txt')
  }

  fault(kind: string, times = 1): void {
    if (times > 0) this.faults[kind] = (this.faults[kind] ?? 0) + times
  }

  /** How often a run was taken from one of those that stopped. */
  takeovers(from: readonly Stopped[] = this.stopped): Promise<number> {
    return takeoversFrom(this.store, new Set(from.map(({ host }) => host.workerId).filter((id) => id !== undefined)))
  }

  begin(host: Host, index: number): void {
    const { url, folder } = this.place
    const zombie = this.plan.zombies[index]
    const home = join(folder, `home-${index}`)
    mkdirSync(home)
    this.hosts.push(host)
    const order: Begin = {
      do: 'begin',
      url,
      home,
      kind: zombie?.kind ?? 'daemon',
      leaseMs: this.plan.leaseMs,
      ledger: this.ledger,
      clock: this.clockOf(index, 'from the beginning'),
      clockFile: `${home}.clock`,
      cutOffMs: this.plan.cutOff && zombie !== undefined ? this.plan.leaseMs * CUT_OFF_LEASES : 0,
      ...(zombie === undefined ? {} : { boundary: zombie.boundary }),
    }
    host.begin(order)
  }

  clockOf(index: number, when: 'from the beginning' | 'while one is stopped'): WrongClock {
    const fault = this.plan.clock
    if (fault === undefined || (fault.when !== when && when === 'from the beginning')) return RIGHT
    const isLast = index === this.plan.zombies.length
    const isMeant = fault.whose === 'all' || (fault.whose === 'the first' ? index === 0 : isLast)
    return isMeant ? fault.clock : RIGHT
  }

  /** Looks, with a person who decides what waits, until this is so or the time is over. */
  async until(isSo: () => Promise<boolean> | boolean, ms: number): Promise<boolean> {
    const deadline = performance.now() + ms
    let decided = 0
    for (;;) {
      if (await isSo()) return true
      if (performance.now() > deadline) return false
      if (performance.now() > decided + 5 * LOOK_MS) {
        await decide(this.store, this.ledger)
        decided = performance.now()
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  }
}

/** Plays one case. Whatever breaks, also while it is put away, is a problem of its seed. */
export async function play(
  seed: number,
  databases: Databases,
  hosts: Hosts,
  drawn = planOf(seed, databases.engines),
): Promise<Outcome> {
  const putAway: (() => Promise<void>)[] = []
  const problems: string[] = []
  const broke = (error: unknown) => void problems.push(`broke off: ${String(error)}`)
  const scene = await open(drawn, databases, hosts, problems, putAway).catch(broke)
  const seen = await (scene && act(scene, hosts))?.catch(broke)
  for (const each of putAway.toReversed()) await each().catch(broke)
  const faults = scene?.faults ?? {}
  return { seed, faults, ...(seen ?? { runs: 0, effects: 0 }), problems: told(problems, scene) }
}

/** A place with its store, and as many workers as it needs. */
async function open(
  drawn: Plan,
  databases: Databases,
  hosts: Hosts,
  problems: string[],
  putAway: (() => Promise<void>)[],
): Promise<Scene> {
  const place = await databases.next(drawn.engine)
  putAway.push(() => place.remove())
  const store = await openStore(place.url, { clock: systemClock, random })
  putAway.push(() => store.close())
  const waiting = await Promise.all(Array.from({ length: drawn.zombies.length + 1 }, () => hosts.take()))
  for (const host of waiting) putAway.push(() => hosts.giveBack(host, problems.length === 0))
  const plan = { ...drawn, leaseMs: hosts.leaseMs(drawn.leaseMs) }
  return new Scene(plan, store, place, waiting, problems)
}

async function act(scene: Scene, hosts: Hosts): Promise<Pick<Outcome, 'runs' | 'effects' | 'recoveryMs'>> {
  const { store, plan, problems, ledger } = scene
  await trouble(scene, hosts)
  const before = plan.back === 'when all is done' ? await allRuns(store) : []
  const whileStopped = await scene.takeovers()
  scene.fault('taken over while stopped', whileStopped)
  await comeBack(scene)
  const recoveryMs = await rest(scene)
  scene.fault('taken over after that', (await scene.takeovers()) - whileStopped)
  const now = new Map((await allRuns(store)).map((run) => [run.id, run]))
  for (const run of before)
    if (run.endedAt !== null && !isDeepStrictEqual(now.get(run.id), run))
      problems.push(`a run that had ended was changed by one that came back: ${run.id}`)
  await endAll(scene)
  problems.push(...(await verdictOn(store, ledger, scene.promised, excusesOf(scene))))
  scene.story = await storyOf(store, problems)
  const [runs, effects] = [(await allRuns(store)).length, linesOf(ledger).length]
  return { runs, effects, ...(recoveryMs === undefined ? {} : { recoveryMs }) }
}

/** What can explain that a run did not succeed, if what is recorded of it agrees. */
function excusesOf({ plan: { engine, clock, leaseMs }, hosts }: Scene): Excuses {
  const selfFences = hosts.flatMap(({ said }) => said.filter((line) => line.startsWith('stops ')).map(fenceOf))
  // By the only clock that there is, something has taken more than a year: what has a limit has reached it. Behind is the same: what
  // one writes down then is old for the others. A server has a clock of its own.
  const yearsOff = engine === 'sqlite' && Math.abs(clock?.clock.offsetMs ?? 0) > 86_400_000
  return { yearsOff, stops: selfFences, leaseMs }
}

function fenceOf(line: string): SelfFence {
  const [, workerId = '', at = ''] = line.split(' ')
  return { workerId, at: Number(at) }
}

/** With what it takes to understand a problem. */
function told(problems: readonly string[], scene: Scene | undefined): string[] {
  if (problems.length === 0 || scene === undefined) return [...problems]
  const { plan, hosts } = scene
  const lines = hosts.flatMap(({ pid, said, exit }) =>
    [...said, `exit ${exit ?? 'no'}`].map((line) => `${pid} ${line}`),
  )
  // One that cannot reach its store says the same again and again.
  return [
    ...problems,
    JSON.stringify(plan),
    ...scene.story,
    ...new Set(lines.filter((line) => !/ (up|ready|ended)\b/.test(line))),
  ]
}

/** Until those that are to stop have stopped, each as it takes over from the one before, and the last one carries on. */
async function trouble(scene: Scene, hosts: Hosts): Promise<void> {
  const { plan, store, promised, waiting: all } = scene
  for (const work of plan.work) await askFor(store, work, scene.ledger, promised)
  const last = plan.zombies.length
  if (plan.together) for (const [index, host] of all.entries()) scene.begin(host, index)
  for (const [index, host] of all.entries()) {
    if (!plan.together) scene.begin(host, index)
    const began = performance.now()
    if (index === last) break
    const up = await host.hears('up', 'stopping', 'broken')
    if (!plan.together && up?.startsWith('up') === true) hosts.hasStarted(performance.now() - began)
    await stops(scene, host, index)
  }
  if (plan.clock !== undefined) setWrong(scene)
  const { back, leaseMs } = plan
  const isTime = {
    'when all is done': () => isAtRest(store),
    'in the middle': inTheMiddle(scene),
    'as soon as the lease is over': () => false,
    'when another has it': longTaken(scene),
  }[back]
  // What cannot go on without the one that is stopped waits for it; so it does come back.
  const isRested = await scene.until(
    isTime,
    back === 'as soon as the lease is over' ? leaseMs * 1.2 : leaseMs * 4 + 1_500,
  )
  scene.freeAt = isRested ? (scene.stoppedAt ?? 0) + leaseMs : performance.now()
  if (isRested && back === 'when all is done') scene.restedAt = performance.now()
}

/** Whether something was done after a run of the last that stopped was taken over; or nothing is left to do. */
function inTheMiddle(scene: Scene): () => Promise<boolean> {
  const { store, ledger, stopped } = scene
  let before = linesOf(ledger).length
  let isTaken = false
  return async () => {
    const lines = linesOf(ledger).length
    isTaken ||= (await scene.takeovers(stopped.slice(-1))) > 0
    if (isTaken && lines > before) return true
    if (!isTaken) before = lines
    return isAtRest(store)
  }
}

/** Whether a command was taken over, by one that has not stopped, too, and has had the time to lay its hand on it. */
function longTaken(scene: Scene): () => Promise<boolean> {
  const { store, plan, stopped } = scene
  let takenAt: number | undefined
  return async () => {
    const commands = (await allRuns(store)).filter(({ request }) => request.kind === 'command')
    const owners = await Promise.all(commands.map(async ({ id }) => (await store.read(attemptsOf, id)).slice(1).at(-1)))
    const isTaken = owners.some((last) => last && !stopped.some(({ host }) => host.workerId === last.workerId))
    if (isTaken) takenAt ??= performance.now()
    return takenAt !== undefined && performance.now() > takenAt + plan.leaseMs * 1.2
  }
}

/** Waits until it has stopped, or there is nothing more to come that could stop it. */
async function stops(scene: Scene, host: Host, index: number): Promise<void> {
  const { place, dies } = scene.plan.zombies[index]!
  await scene.until(
    async () => host.isStopped || host.exit !== undefined || (await isAtRest(scene.store)),
    scene.plan.leaseMs * 3,
  )
  if (!host.isStopped) return
  scene.stoppedAt = performance.now()
  scene.stopped.push({ host, dies })
  scene.fault(dies ? `stopped ${place}, and killed there` : `stopped ${place}`)
}

function setWrong(scene: Scene): void {
  const { clock } = scene.plan
  if (clock === undefined) return
  scene.fault(clock.name)
  if (clock.when === 'from the beginning') return
  for (const [index, host] of scene.hosts.entries()) host.setClock(scene.clockOf(index, clock.when))
}

/** The dead go, the others go on; some time after that the clocks are right again. */
async function comeBack(scene: Scene): Promise<void> {
  for (const { host, dies } of scene.stopped) if (dies) await host.kill()
  for (const host of scene.hosts) host.goOn()
  if (scene.plan.cutOff) await letErrandsGo(scene)
  // Whoever comes back is a worker like any other.
  await askFor(scene.store, 'clerk', scene.ledger, scene.promised)
  if (scene.plan.clock !== undefined) await setRight(scene)
}

/** Long enough that whoever came back has renewed what it holds, and looked for what others lost, by the clock that it found. */
async function setRight(scene: Scene): Promise<void> {
  const { hosts, plan, stopped } = scene
  await scene.until(() => false, plan.leaseMs * AWAKE_LEASES)
  for (const host of hosts) host.setClock(RIGHT)
  scene.fault(
    'woke to another clock',
    stopped.filter(({ host }) => host.said.includes('wakes to another clock')).length,
  )
  scene.freeAt = performance.now()
}

/** Each that came back has told its commands to stop: what others have taken over goes on, and may now end. */
async function letErrandsGo(scene: Scene): Promise<void> {
  const back = scene.stopped.filter(({ dies }) => !dies)
  if (back.length > 0) scene.fault('comes back without its database')
  const isThrough = ({ host }: Stopped) =>
    host.exit !== undefined || host.said.some((line) => line.startsWith('stops '))
  await scene.until(() => back.every(isThrough), scene.plan.leaseMs * CUT_OFF_LEASES)
  // A stop that is heard takes a moment to be seen.
  await scene.until(() => false, scene.plan.leaseMs / 3)
  writeFileSync(goOf(scene.ledger), '')
}

/** How long it took until everything was at its end. */
async function rest(scene: Scene): Promise<number | undefined> {
  const isQuiet = await scene.until(() => isAtRest(scene.store), REST_MS)
  if (!isQuiet) scene.problems.push(`${REST_MS / 1_000} s after the last fault there is still something to come`)
  if (scene.stoppedAt === undefined) return undefined
  return Math.max(0, Math.round((scene.restedAt ?? performance.now()) - scene.freeAt))
}

/** Each of them lets go of its store by itself. Killed may be one that was stopped in front of a write that was then done again. */
async function endAll(scene: Scene): Promise<void> {
  for (const host of scene.hosts) {
    const handedOver = await host.end().catch((error: unknown) => void scene.problems.push(String(error)))
    const broken = host.said.find((line) => line.startsWith('broken'))
    if (broken !== undefined) scene.problems.push(`a worker broke: ${broken}`)
    if (handedOver !== undefined && handedOver > 0)
      scene.problems.push(`a worker held ${handedOver} runs that had ended`)
    if (host.exit !== undefined && host.exit !== 'SIGKILL') scene.problems.push(`a worker ended by ${host.exit}`)
    const wasKilled = scene.stopped.some((stopped) => stopped.host === host && stopped.dies)
    if (host.exit === 'SIGKILL' && !wasKilled) scene.fault('zombie ended by its taker')
  }
}
