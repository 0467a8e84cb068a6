import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Outcome } from '../method.ts'
import { databaseFaults, fileFaults, isLasting } from './calls.ts'
import { counted, instantsMet, met } from './fault.ts'
import type { Disguise, Fault } from './fault.ts'
import { mountHome } from './mount.ts'
import { Room } from './room.ts'
import type { Ended } from './room.ts'
import type { Scenario } from './scenarios.ts'
import { settle } from './settle.ts'

/** Where a program breaks off: no sentence for whoever uses it. */
const STACK = /^\s+at .*[:(]\d+:\d+\)?$/m
/** An error that says what it is, `files/full: …`; or where an event is. */
const CODED = /holdfast: .*\b[a-z-]+\/[a-z-]+: \S|is kept in|is LOST/

export type Sickness =
  | Fault
  | { readonly layer: 'mount'; readonly errno: 'ENOSPC' | 'EROFS'; readonly call: 'any'; readonly nth: 1 }

export interface Case {
  readonly scenario: Scenario
  readonly template: Room
  readonly fault: Sickness
}

/** How often a case is played whose fault is not met: what somebody waits for does not take the same calls each time. */
const MOST_TIMES = 3

/** The scenario on a healthy disk, once: what is there before it, and each call of it that can fail. */
export async function casesOf(scenario: Scenario, program: string, withMounts: boolean): Promise<Case[]> {
  const template = await roomFor(scenario, program)
  const room = await roomLike(template, scenario)
  try {
    const [database, files] = [join(room.folder, 'calls.txt'), join(room.folder, 'counts.txt')]
    const ended = await scenario.act(room, counted(placeOf(room, scenario), database, files))
    if (!isDone(scenario, ended)) throw new Error(`"${scenario.name}" does not work on a healthy disk: ${ended.stderr}`)
    await room.supervisorsEnded()
    const calls: Sickness[] = [
      ...databaseFaults(readFileSync(database, 'utf8')),
      ...fileFaults(readFileSync(files, 'utf8')),
    ]
    return [...(withMounts ? MOUNTS : []), ...calls].map((fault) => ({ scenario, template, fault }))
  } finally {
    room.remove()
  }
}

const MOUNTS: readonly Sickness[] = [
  { layer: 'mount', errno: 'ENOSPC', call: 'any', nth: 1 },
  { layer: 'mount', errno: 'EROFS', call: 'any', nth: 1 },
]

const placeOf = ({ folder, home }: Room, { isAnywhere = false }: Scenario) => ({ folder, home, isAnywhere })

async function roomFor({ prepare }: Scenario, program: string): Promise<Room> {
  const room = new Room(program)
  await prepare?.(room)
  return room
}

async function roomLike(template: Room, scenario: Scenario): Promise<Room> {
  return scenario.isBound === true ? roomFor(scenario, template.program) : new Room(template.program, template)
}

/** What was seen of a case, as far as it came. */
interface Seen {
  /** When the disk failed, in milliseconds. */
  instants: readonly number[]
  effects: number
  readonly problems: string[]
}

/** A fault that was not met is none. */
export async function play(each: Case): Promise<Omit<Outcome, 'seed'>> {
  const { scenario, fault } = each
  let seen = await playOnce(each)
  for (let time = 1; time < MOST_TIMES && seen.instants.length === 0 && seen.problems.length === 0; time += 1)
    seen = await playOnce(each)
  const { instants, effects, problems } = seen
  const where = `${scenario.name}, ${fault.layer} ${fault.call} ${fault.nth} ${fault.errno}`
  return {
    faults: instants.length > 0 ? { [`${fault.errno} in ${fault.layer}`]: 1 } : {},
    runs: 1,
    effects,
    ...(instants.length > 0 ? { recoveryMs: Math.round(Date.now() - Math.max(...instants)) } : {}),
    problems: problems.map((problem) => `${where}: ${problem}`),
  }
}

/** Whatever breaks here is a failure of the case: a database that nobody can open any more is what is looked for. */
async function playOnce({ scenario, template, fault }: Case): Promise<Seen> {
  const seen: Seen = { instants: [], effects: 0, problems: [] }
  try {
    const room = await roomLike(template, scenario)
    try {
      if (fault.layer === 'mount') await onMount(scenario, room, fault.errno === 'ENOSPC' ? 'full' : 'read-only', seen)
      else await withFault(scenario, room, fault, seen)
    } finally {
      room.remove()
    }
  } catch (error) {
    seen.problems.push(`it broke: ${error instanceof Error ? error.stack : String(error)}`)
  }
  return seen
}

async function withFault(scenario: Scenario, room: Room, fault: Fault, seen: Seen): Promise<void> {
  const disguise = met(fault, placeOf(room, scenario))
  const first = await scenario.act(room, disguise)
  if (disguise.isLasting === true) room.endSupervisors()
  // A result that was paid for waits ten minutes for room on the disk; whoever sits there was not that patient.
  const waits = fault.layer === 'supervisor' && first.signal !== null
  if (!waits) seen.problems.push(...wrongAnswer(first))
  try {
    await lookAfterwards(scenario, room, first, seen)
  } finally {
    seen.instants = instantsMet(room)
  }
  if (!isLasting(fault.errno) && seen.instants.length > 1)
    seen.problems.push(`${seen.instants.length} calls failed instead of one`)
}

async function onMount(scenario: Scenario, room: Room, how: 'full' | 'read-only', seen: Seen): Promise<void> {
  const mounted = mountHome(room, how)
  try {
    const first = await scenario.act(room, LASTING)
    room.endSupervisors()
    mounted.heal()
    seen.instants = [Date.now()]
    seen.problems.push(...wrongAnswer(first))
    await lookAfterwards(scenario, room, first, seen)
  } finally {
    mounted.unmount()
  }
}

const LASTING: Disguise = { before: [], env: {}, isLasting: true }

const isDone = (scenario: Scenario, ended: Ended) => scenario.isDone?.(ended) ?? ended.code === 0

/** Done, or a sentence with a code; never a crash or a trace of calls, nor silence. */
function wrongAnswer({ code, signal, stdout, stderr }: Ended): string[] {
  const wrong: string[] = []
  if (STACK.test(stderr)) wrong.push(`it shows where in the code it broke: ${stderr.slice(-800)}`)
  if (code !== 0 && !CODED.test(stderr) && !stdout.includes('"code": "'))
    wrong.push(`it ends with ${signal ?? code} and says nothing that can be acted upon: ${stderr.slice(-500)}`)
  return wrong
}

/** The disk is well again: what was acknowledged is there, the same can be asked for again, and it is done once. */
async function lookAfterwards(scenario: Scenario, room: Room, first: Ended, seen: Seen): Promise<void> {
  const { rows, entry, already } = scenario
  const { problems } = seen
  // What is in the spool is in the database a moment later.
  const isStored = isDone(scenario, first) && scenario.isDone === undefined
  if (rows !== undefined && isStored && room.ask(rows) !== '1') problems.push('acknowledged, and lost')
  const again = await scenario.act(room)
  if (!isDone(scenario, again) && already?.test(`${again.stdout}${again.stderr}`) !== true)
    problems.push(`with the disk well again it answers ${again.signal ?? again.code}: ${again.stderr}${again.stdout}`)
  problems.push(...(await settle(room)))
  if (rows !== undefined && room.ask(rows) !== '1') problems.push('in the end it is not there')
  if (entry === undefined) return
  seen.effects = room.effects(entry)
  if (seen.effects > 1) problems.push(`it was done ${seen.effects} times`)
  const isRefused = room.ask(`select 1 from runs where state = 'failed'`) === '1'
  if (seen.effects === 0 && !isRefused) problems.push('it was never done, and nothing says why')
}
