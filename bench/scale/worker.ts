/** One worker process: carries out whatever there is in the database, and says at its end what it took. */
import { createRuntime, defineFunction } from '../../src/index.ts'

const [home, store, calls] = process.argv.slice(2) as [string, string, string]

interface Flow {
  readonly steps: number
}

const flow = defineFunction<Flow>('flow', async (run) => {
  for (let i = 0; i < run.input.steps; i++) await run.step(`s${i}`, () => i)
})
/** How long after the instant it was for. */
const late = defineFunction<{ at: number }>('late', (run) => ({ ms: Date.now() - run.input.at }))

const runtime = await createRuntime({ home, store, agents: [flow, late], capacity: { backlog: 10_000_000 } })
let begin = process.cpuUsage()

/** `go`, then `used` when the work is done, then `end`. */
const WORDS: Readonly<Record<string, () => Promise<unknown>>> = {
  async go() {
    begin = process.cpuUsage()
    await runtime.start({ calls: Number(calls) })
    return 'going'
  },
  async used() {
    const { user, system } = process.cpuUsage(begin)
    return { cpuMs: (user + system) / 1_000, rssMiB: process.memoryUsage().rss / 2 ** 20 }
  },
  async end() {
    await runtime.close()
    return 'ended'
  },
}

process.on('message', (word: string) => void WORDS[word]?.().then((answer) => process.send?.(answer)))
process.send?.('ready')
