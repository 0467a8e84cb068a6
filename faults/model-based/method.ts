import * as fc from 'fast-check'

import { describeError } from '../../src/base/errors.ts'
import type { Method } from '../method.ts'
import { inProcesses } from '../processes.ts'
import { someCommands } from './commands.ts'
import type { Command } from './commands.ts'
import { live } from './live.ts'
import { SERVER } from './play.ts'
import { Sides, aServer } from './sides.ts'

/** Random commands to a model of a few hundred lines, to SQLite and to PostgreSQL. */
export const modelBased: Method = {
  name: 'model-based',
  title:
    'Random commands to a plain model, to SQLite and to PostgreSQL: the same answers, and the same public JSON after each',
  cases: 'sequences',
  async run(campaign) {
    const server = await aServer()
    process.env[SERVER] = server.localUrl()
    try {
      await inProcesses(campaign, new URL('worker.ts', import.meta.url).pathname)
    } finally {
      await server.stop()
    }
  },
  async shrink(seed) {
    const found = await withSides((sides) =>
      fc.check(
        fc.asyncProperty(someCommands, async (commands) => {
          const { problem } = await live(sides, commands)
          if (problem !== undefined) throw new Error(problem)
        }),
        { seed, numRuns: 1 },
      ),
    )
    const [commands = []] = found.counterexample ?? []
    const path = `seed ${seed}, path ${found.counterexamplePath ?? 'none'}, ${found.numShrinks} times shortened`
    return [path, ...commands.map(inWords), describeError(found.errorInstance)].join('\n  ')
  },
}

const inWords = ({ kind, who, how, passMs }: Command) => `after ${passMs} ms: ${kind} (who ${who}, how ${how})`

async function withSides<T>(work: (sides: Sides) => Promise<T>): Promise<T> {
  const server = await aServer()
  try {
    const sides = await Sides.open(server.localUrl(), 'model')
    try {
      return await work(sides)
    } finally {
      await sides.close()
    }
  } finally {
    await server.stop()
  }
}
