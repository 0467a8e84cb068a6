import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

import type { Outcome } from '../method.ts'
import { Dice } from '../simulation/seeded.ts'
import { ALL_LOST, choicesAt } from './choices.ts'
import { Disk, isWithoutMeaning } from './disk.ts'
import type { Before, State } from './disk.ts'
import { examine, rebuild } from './examine.ts'
import { LANDINGS } from './landings.ts'
import { LIVES } from './lives.ts'
import type { Claim, Mark } from './place.ts'
import { record } from './record.ts'
import { REPOSITORY } from './repository.ts'
import type { Recorded } from './record.ts'
import type { Happened } from './trace.ts'

/** One in so many states is brought to its end, too: that takes ten times as long as looking at it. */
const SETTLED_ONE_IN = 15
/** Of an instant with more uncertain changes than this only a share is looked at: a new database is one commit with hundreds. */
const MANY_CHANGES = 24
/** The first few say what is wrong; a disk that forgets has thousands. */
const MOST_PROBLEMS = 8

export interface Limits {
  /** At each instant so many states at random, beside those that are tried everywhere. */
  readonly randoms: number
  /** Of all states at most about so many, spread evenly. */
  readonly states?: number
}

/** One life, and what every power loss in it would have left. What is left of files takes ten times as long: a worker recovers each. */
export function play(seed: number): Promise<Omit<Outcome, 'seed'>> {
  const kinds = Object.keys(LIVES)
  const kind = kinds[(seed - 1) % kinds.length]!
  return playLife(kind, seed, { randoms: 2, states: kind in LANDINGS ? 120 : 1_200 })
}

/** A life that breaks has failed: whatever it was, nobody has seen what its disks would have been. */
export async function playLife(kind: string, seed: number, limits: Limits): Promise<Omit<Outcome, 'seed'>> {
  try {
    return await recordAndLook(kind, seed, limits)
  } catch (error) {
    const problem = `it broke: ${error instanceof Error ? error.stack : String(error)}`
    return { faults: {}, runs: 0, effects: 0, problems: [problem] }
  }
}

async function recordAndLook(kind: string, seed: number, limits: Limits): Promise<Omit<Outcome, 'seed'>> {
  const folder = mkdtempSync(join(memoryDisk(), 'holdfast-power-'))
  try {
    const root = join(folder, 'disk')
    const recorded = await record(kind, seed, root)
    refuseIncomplete(root, recorded)
    return await new Losses(root, recorded, seed, limits).all()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What the trace says must be what is there: else something was written in a way that it does not show. */
function refuseIncomplete(root: string, { before, happened }: Recorded): void {
  const disk = new Disk(root, before)
  for (const each of happened) disk.take(each)
  const { files } = disk.state({ fault: 'none', keeps: () => true })
  const there = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((path) => !isWithoutMeaning(path))
  const wrong = [...new Set([...there, ...files.keys()])].filter((path) => {
    const content = files.get(path)?.()
    return content === undefined || !there.includes(path) || !content.equals(readFileSync(join(root, path)))
  })
  if (wrong.length > 0) throw new Error(`the trace does not show all that was written to ${wrong.join(', ')}`)
}

/** What is rebuilt thousands of times is rebuilt in memory where there is some; what is synced in there costs nothing. */
function memoryDisk(): string {
  return process.platform === 'linux' && process.env.TMPDIR === undefined ? '/dev/shm' : tmpdir()
}

/** All that a power loss could have left of one life. */
class Losses {
  readonly #root: string
  readonly #before: Before
  readonly #happened: readonly Happened[]
  readonly #seed: number
  readonly #limits: Limits
  readonly #claims: ReadonlyMap<number, readonly Claim[]>
  /** Where there is a repository, what was before anything happened to it is left to the others. */
  readonly #from: number
  readonly #faults: Record<string, number> = {}
  readonly #problems: string[] = []
  readonly #seen = new Set<string>()
  readonly #known: { claims: Claim[]; effects: string[] } = { claims: [], effects: [] }
  #slowestMs = 0
  #states = 0

  constructor(root: string, { before, happened }: Recorded, seed: number, limits: Limits) {
    this.#root = root
    this.#before = before
    this.#happened = happened
    this.#seed = seed
    this.#limits = limits
    this.#claims = claimsIn(happened)
    this.#from = Math.max(
      0,
      happened.findIndex((each) => isInRepository(root, each)),
    )
  }

  async all(): Promise<Omit<Outcome, 'seed'>> {
    const unseen = this.#happened.flatMap((each) =>
      each.kind === 'unseen' ? [`the trace does not show ${each.what}`] : [],
    )
    const disk = new Disk(this.#root, this.#before)
    const dice = new Dice(this.#seed)
    const every = this.#limits.states === undefined ? 1 : Math.max(1, this.#estimate() / this.#limits.states)
    for (const [index, each] of this.#happened.entries()) {
      const isChanged = disk.take(each)
      this.#known.claims.push(...(this.#claims.get(index) ?? []))
      if (each.kind === 'effect') this.#known.effects.push(each.text)
      const isTold = this.#claims.has(index) || each.kind === 'effect'
      if (index < this.#from) continue
      if (isTold || (isChanged && isLookedAt(disk, dice))) await this.#at(disk, dice, isTold, every)
    }
    return {
      faults: this.#faults,
      runs: this.#known.claims.filter(({ rows }) => rows?.includes('from runs')).length,
      effects: this.#known.effects.length,
      recoveryMs: this.#slowestMs,
      peaks: { 'states of one life': this.#states },
      problems: [...unseen, ...this.#problems],
    }
  }

  /** How many states there are: counted once without looking at them. */
  #estimate(): number {
    const [disk, dice] = [new Disk(this.#root, this.#before), new Dice(this.#seed)]
    const keys = new Set<string>()
    for (const [index, each] of this.#happened.entries())
      if (disk.take(each) && index >= this.#from && isLookedAt(disk, dice))
        for (const choice of choicesAt(disk, dice, this.#limits.randoms)) keys.add(disk.state(choice).key)
    return keys.size
  }

  async #at(disk: Disk, dice: Dice, isTold: boolean, every: number): Promise<void> {
    const known = `${this.#known.claims.length} ${this.#known.effects.length} `
    for (const choice of choicesAt(disk, dice, this.#limits.randoms)) {
      const state = disk.state(choice)
      if (this.#problems.length >= MOST_PROBLEMS || this.#seen.has(known + state.key)) continue
      this.#seen.add(known + state.key)
      // Where somebody has just been told something, nothing that is lost is passed over.
      if (!(isTold && choice.fault === ALL_LOST) && every > 1 && !dice.chance(1 / every)) continue
      this.#states += 1
      this.#faults[choice.fault] = (this.#faults[choice.fault] ?? 0) + 1
      rebuild(this.#root, state)
      const began = performance.now()
      const problems = await examine(this.#root, this.#known, this.#states % SETTLED_ONE_IN === 0)
      this.#slowestMs = Math.max(this.#slowestMs, Math.round(performance.now() - began))
      if (problems.length > 0) this.#keep(state, `${choice.fault}, after ${this.#lastClaim()}`, problems)
    }
  }

  /** A life never happens twice in quite the same way, so the first disk that is wrong stays for whoever looks into it. */
  #keep(state: State, when: string, problems: readonly string[]): void {
    const place = join(tmpdir(), `holdfast-power-loss-${this.#seed}`)
    const isFirst = this.#problems.length === 0
    if (isFirst) rebuild(place, state)
    const kept = isFirst ? ` (that disk is kept in ${place})` : ''
    this.#problems.push(`${when}: ${problems.slice(0, 5).join('; ')}${kept}`)
  }

  #lastClaim(): string {
    return this.#known.claims.at(-1)?.what ?? 'nothing'
  }
}

const isInRepository = (root: string, each: Happened) =>
  'path' in each && each.path.startsWith(`${root}/${REPOSITORY}/`)

const isLookedAt = (disk: Disk, dice: Dice) => dice.chance(MANY_CHANGES / (1 + disk.uncertain().changes.length))

/** Where each claim began: at its mark, or at the words that told of it, between the mark before and its own. */
function claimsIn(happened: readonly Happened[]): Map<number, Claim[]> {
  const claims = new Map<number, Claim[]>()
  let from = 0
  for (const [index, each] of happened.entries()) {
    if (each.kind !== 'said' || !each.text.startsWith('mark ')) continue
    for (const line of each.text.trim().split('\n')) {
      const { claim, said } = JSON.parse(line.slice('mark '.length)) as Mark
      const place = said === undefined ? index : (lastSaid(happened, said, from, index) ?? index)
      claims.set(place, [...(claims.get(place) ?? []), claim])
    }
    from = index
  }
  return claims
}

function lastSaid(happened: readonly Happened[], words: string, from: number, to: number): number | undefined {
  for (let index = to - 1; index > from; index -= 1) {
    const each = happened[index]!
    if (each.kind === 'said' && each.text.includes(words)) return index
  }
  return undefined
}
