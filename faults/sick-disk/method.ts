import { enableCompileCache } from 'node:module'
import { availableParallelism } from 'node:os'

import { builtProgram } from '../../test/support/built-program.ts'
import type { Campaign, Method } from '../method.ts'
import { canTrace } from '../power-loss/record.ts'
import { Dice } from '../simulation/seeded.ts'
import { casesOf, play } from './case.ts'
import type { Case } from './case.ts'
import { canMount } from './mount.ts'
import { compiledCodeOf } from './room.ts'
import { SCENARIOS } from './scenarios.ts'

/** Some wait for ten seconds for a disk that does not get well, and hardly take a core meanwhile. */
const AT_ONCE = 5 * availableParallelism()

/** Real programs; each call to the disk that they make fails once, in each of three ways. */
export const sickDisk: Method = {
  name: 'sick-disk',
  title: 'Real programs whose every call to the disk fails once: EIO, ENOSPC, EMFILE; small and read-only file systems',
  cases: 'calls that fail',
  size: async () => (canTrace() ? (await theTable()).length : 0),
  async run(campaign) {
    if (!canTrace()) {
      console.log('left out: it needs strace, and the right to use it')
      return
    }
    const table = await theTable()
    try {
      await inOrder(campaign, table)
    } finally {
      made = undefined
      for (const { template } of table) template.remove()
    }
  },
}

let made: Promise<Case[]> | undefined

/** Whoever asks how large it is will want it next. */
const theTable = () => (made ??= allCases())

/** In an order that mixes the scenarios, the same each time: a short campaign sees something of each. */
async function allCases(): Promise<Case[]> {
  const withMounts = canMount()
  const program = await builtProgram()
  // The supervisors that start from here find their code compiled, as those of the program do.
  enableCompileCache(compiledCodeOf(program))
  const cases: Case[] = []
  for (const scenario of SCENARIOS) cases.push(...(await casesOf(scenario, program, withMounts)))
  const dice = new Dice(1)
  return cases
    .map((each) => ({ each, place: dice.fraction() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ each }) => each)
}

async function inOrder({ first, most, isOver, tell }: Campaign, table: readonly Case[]): Promise<void> {
  const end = Math.min(first - 1 + most, table.length)
  let next = first - 1
  const work = async () => {
    while (next < end && !isOver()) {
      const place = next
      next += 1
      tell({ seed: place + 1, ...(await play(table[place]!)) })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}
