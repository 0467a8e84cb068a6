import type { Method } from '../method.ts'
import { inJobs, printedBy } from './jobs.ts'

const SCRIPT = new URL('worker.ts', import.meta.url).pathname

/** The real engine, workers and loop in one seeded thread, on a simulated clock, with something going wrong at any statement. */
export const simulation: Method = {
  name: 'simulation',
  title:
    'A seeded world in one thread: three workers, a parent with five children, a schedule, functions, approvals and doubts',
  cases: 'worlds',
  run: (campaign) => inJobs(SCRIPT, campaign),
  shrink: (seed) =>
    printedBy(SCRIPT, ['shrink', String(seed)]).catch(() => `seed ${seed} breaks its process, and is not made shorter`),
}
