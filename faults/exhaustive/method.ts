import type { Campaign, Method } from '../method.ts'
import { inJobs, oneJob, printedBy } from '../simulation/jobs.ts'

const SCRIPT = new URL('worker.ts', import.meta.url).pathname

let made: Promise<{ readonly size: number; readonly digest: string }> | undefined

/** Whoever asks for one of both asks for the other. */
const table = () => (made ??= countedTable())

/** How many cases there are, and a digest of them. */
async function countedTable(): Promise<{ readonly size: number; readonly digest: string }> {
  const [size, digest = ''] = (await printedBy(SCRIPT, ['count'])).split(' ')
  return { size: Number(size), digest }
}

/** The world of the simulation without chance: one fault at one moment, and then the next. */
export const exhaustive: Method = {
  name: 'exhaustive',
  title:
    'Twelve small scenarios in one thread, each of eight faults at every moment at which it can happen: every statement, reply, effect and record',
  cases: 'cases',
  size: async () => (await table()).size,
  digest: async () => (await table()).digest,
  run: (campaign: Campaign) => inJobs(SCRIPT, campaign),
}

/** So many of the table, one of each `step`; of those whose words match. */
export const someOf = (step: number, most: number, tell: Campaign['tell'], pattern = ''): Promise<void> =>
  oneJob(SCRIPT, { first: 1, most: most * step, isOver: () => false, tell }, 0, step, [pattern])
