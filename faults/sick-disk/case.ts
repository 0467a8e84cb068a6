import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Outcome } from '../method.ts'
import { counted, faultsOf, met } from './fault.ts'
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

export type Sickness = Fault | { readonly layer: 'mount'; readonly errno: 'ENOSPC' | 'EROFS'; readonly nth: 1 }

export interface Case {
  readonly scenario: Scenario
  readonly template: Room
  readonly fault: Sickness
}

/** The scenario on a healthy disk, once: what is there before it, and each call of it that can fail. */
export async function casesOf(scenario: Scenario, program: string, withMounts: boolean): Promise<Case[]> {
  const template = await roomFor(scenario, program)
  const room = await roomLike(template, scenario)
  try {
    const [database, files] = [join(room.folder, 'calls.txt'), join(room.folder, 'counts.txt')]
    const ended = await scenario.act(room, counted(room.home, database, files))
    if (!isDone(scenario, ended)) throw new Error(`"${scenario.name}" does not work on a healthy disk: ${ended.stderr}`)
    const calls: Sickness[] = faultsOf(readFileSync(database, 'utf8'), readFileSync(files, 'utf8'))
    return [...(withMounts ? MOUNTS : []), ...calls].map((fault) => ({ scenario, template, fault }))
  } finally {
    room.remove()
  }
}

const MOUNTS: readonly Sickness[] = [
  { layer: 'mount', errno: 'ENOSPC', nth: 1 },
  { layer: 'mount', errno: 'EROFS', nth: 1 },
]

async function roomFor({ prepare }: Scenario, program: string): Promise<Room> {
  const room = new Room(program)
  await prepare?.(room)
  return room
}

async function roomLike(template: Room, scenario: Scenario): Promise<Room> {
  return scenario.isBound === true ? roomFor(scenario, template.program) : new Room(template.program, template)
}

export async function play({ scenario, template, fault }: Case): Promise<Omit<Outcome, 'seed'>> {
  const room = await roomLike(template, scenario)
  const mounted = fault.layer === 'mount' ? mountHome(room, fault.errno === 'ENOSPC' ? 'full' : 'read-only') : undefined
  try {
    const disguise = fault.layer === 'mount' ? LASTING : met(fault, room.home)
    const first = await scenario.act(room, disguise)
    if (disguise.isLasting === true) room.endSupervisors()
    mounted?.heal()
    const began = performance.now()
    // A result that was paid for waits ten minutes for room on the disk; whoever sits there was not that patient.
    const waits = fault.layer === 'supervisor' && first.signal !== null
    const problems = [...(waits ? [] : wrongAnswer(first)), ...(await wrongAfterwards(scenario, room, first))]
    const where = `${scenario.name}, ${fault.layer} call ${fault.nth} ${fault.errno}`
    return {
      faults: { [`${fault.errno} in ${fault.layer}`]: 1 },
      runs: 1,
      effects: scenario.entry === undefined ? 0 : room.effects(scenario.entry),
      recoveryMs: Math.round(performance.now() - began),
      problems: problems.map((problem) => `${where}: ${problem}`),
    }
  } finally {
    mounted?.unmount()
    room.remove()
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
async function wrongAfterwards(scenario: Scenario, room: Room, first: Ended): Promise<string[]> {
  const wrong: string[] = []
  const { rows, entry, already } = scenario
  // What is in the spool is in the database a moment later.
  const isStored = isDone(scenario, first) && scenario.isDone === undefined
  if (rows !== undefined && isStored && room.ask(rows) !== '1') wrong.push('acknowledged, and lost')
  const again = await scenario.act(room)
  if (!isDone(scenario, again) && already?.test(`${again.stdout}${again.stderr}`) !== true)
    wrong.push(`with the disk well again it answers ${again.signal ?? again.code}: ${again.stderr}${again.stdout}`)
  wrong.push(...(await settle(room)))
  if (rows !== undefined && room.ask(rows) !== '1') wrong.push('in the end it is not there')
  const effects = entry === undefined ? 0 : room.effects(entry)
  if (effects > 1) wrong.push(`it was done ${effects} times`)
  const isRefused = room.ask(`select 1 from runs where state = 'failed'`) === '1'
  if (effects === 0 && entry !== undefined && !isRefused) wrong.push('it was never done, and nothing says why')
  return wrong
}
