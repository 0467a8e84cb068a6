import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Outcome } from '../method.ts'
import { counted, faultsOf, met } from './fault.ts'
import type { Fault } from './fault.ts'
import { Room } from './room.ts'
import type { Ended } from './room.ts'
import type { Scenario } from './scenarios.ts'
import { settle } from './settle.ts'

/** Where a program breaks off: no sentence for whoever uses it. */
const STACK = /^\s+at .*[:(]\d+:\d+\)?$/m
/** An error that says what it is: `files/full: …`. */
const CODED = /holdfast: .*\b[a-z-]+\/[a-z-]+: \S/

export interface Case {
  readonly scenario: Scenario
  readonly template: Room
  readonly fault: Fault
}

/** The scenario on a healthy disk, once: what is there before it, and each call of it that can fail. */
export async function casesOf(scenario: Scenario): Promise<Case[]> {
  const template = new Room()
  await scenario.prepare?.(template)
  const room = new Room(template)
  try {
    const [database, files] = [join(room.folder, 'calls.txt'), join(room.folder, 'counts.txt')]
    const ended = await scenario.act(room, counted(room.home, database, files))
    if (!isDone(scenario, ended)) throw new Error(`"${scenario.name}" does not work on a healthy disk: ${ended.stderr}`)
    return faultsOf(readFileSync(database, 'utf8'), readFileSync(files, 'utf8')).map((fault) => ({
      scenario,
      template,
      fault,
    }))
  } finally {
    room.remove()
  }
}

export async function play({ scenario, template, fault }: Case): Promise<Omit<Outcome, 'seed'>> {
  const room = new Room(template)
  try {
    const first = await scenario.act(room, met(fault, room.home))
    const problems = wrongAnswer(scenario, first)
    const lost = await lostBefore(scenario, room, first)
    const began = performance.now()
    const second = await scenario.act(room)
    if (!isDone(scenario, second) && scenario.already?.test(second.stderr) !== true)
      problems.push(
        `with the disk well again it answers ${second.code}: ${second.stderr.trim() || second.stdout.trim()}`,
      )
    problems.push(...(await settle(room)), ...lost)
    const recoveryMs = Math.round(performance.now() - began)
    if (scenario.rows !== undefined && room.ask(scenario.rows) !== '1') problems.push('in the end it is not there')
    const effects = scenario.entry === undefined ? 0 : room.effects(scenario.entry)
    if (effects > 1) problems.push(`it was done ${effects} times`)
    if (effects === 0 && scenario.entry !== undefined && isDone(scenario, first))
      problems.push('acknowledged, and never done')
    const where = `${scenario.name}, ${fault.layer} call ${fault.nth} ${fault.errno}`
    return {
      faults: { [`${fault.errno} in ${fault.layer}`]: 1 },
      runs: 1,
      effects,
      recoveryMs,
      problems: problems.map((problem) => `${where}: ${problem}`),
    }
  } finally {
    room.remove()
  }
}

const isDone = (scenario: Scenario, ended: Ended) => scenario.isDone?.(ended) ?? ended.code === 0

/** What was told as done must be there at once, before anything is done again. */
async function lostBefore(scenario: Scenario, room: Room, first: Ended): Promise<string[]> {
  if (scenario.rows === undefined || !isDone(scenario, first) || scenario.isDone !== undefined) return []
  return room.ask(scenario.rows) === '1' ? [] : ['acknowledged, and lost']
}

/** Done, or a sentence with a code; never a crash, a hang or a trace of calls. */
function wrongAnswer(scenario: Scenario, first: Ended): string[] {
  const { code, signal, stderr } = first
  const wrong: string[] = []
  if (signal !== null) wrong.push(`it was ended by ${signal}: ${stderr.slice(-500)}`)
  if (STACK.test(stderr)) wrong.push(`it shows where in the code it broke: ${stderr.slice(-800)}`)
  if (code !== 0 && signal === null && scenario.isDone === undefined && !CODED.test(stderr))
    wrong.push(`it ends with ${code} and says nothing that can be acted upon: ${stderr.slice(-500)}`)
  return wrong
}
