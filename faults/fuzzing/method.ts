import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

import type { Campaign, Method, Outcome } from '../method.ts'
import { BATCH, Batches } from './batch.ts'
import { memoryPlace } from './place.ts'

/** So much may a process that is fed take, the runtime and the tests' own included: without a bound a leak would not show. */
const MOST_MIB = 384
/** Longer than any batch takes on a busy machine: a loop without an end cannot tell of itself. */
const SILENT_MS = 120_000

/** Hostile input on every door: nobody crashes, hangs, grows without end, or does what nobody allowed. */
export const fuzzing: Method = {
  name: 'fuzzing',
  title: `Hostile input on six surfaces, ${BATCH} inputs a batch, drawn from the product's own routes, commands and schemas`,
  cases: 'batches',
  async run(campaign) {
    const jobs = Math.min(availableParallelism(), campaign.most)
    await Promise.all(Array.from({ length: jobs }, (_, job) => oneJob(campaign, job, jobs)))
  },
  async shrink(seed) {
    const { shrunk } = await import('./shrink.ts')
    return shrunk(seed)
  },
}

async function oneJob({ first, most, isOver, tell }: Campaign, job: number, jobs: number): Promise<void> {
  const share = Math.ceil((most - job) / jobs)
  for (let done = 0; done < share && !isOver();) {
    done += await oneProcess({ first: first + job + done * jobs, step: jobs, count: share - done }, isOver, tell)
  }
}

interface Share {
  readonly first: number
  readonly step: number
  readonly count: number
}

type Told =
  | { readonly begun: number }
  | { readonly outcome: Outcome }
  | { readonly hang: number; readonly why: string; readonly fed: number }

/** How many batches it came to. One that ended its process counts, and the next process goes on after it. */
async function oneProcess(
  { first, step, count }: Share,
  isOver: Campaign['isOver'],
  tell: Campaign['tell'],
): Promise<number> {
  const script = new URL('worker.ts', import.meta.url).pathname
  const place = mkdtempSync(join(memoryPlace(), 'holdfast-fuzzing-'))
  const child = fork(script, [first, step, count, place].map(String), {
    execArgv: [`--max-old-space-size=${MOST_MIB}`],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const watch = new Watch(() => child.kill('SIGKILL'))
  let [seen, begun, said] = [0, undefined as number | undefined, '']
  child.stderr!.on('data', (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-4_000)))
  child.on('message', (told: Told) => {
    watch.again()
    if ('begun' in told) begun = told.begun
    else {
      seen += 1
      begun = undefined
      tell('outcome' in told ? told.outcome : failedAt(told.hang, told.why, told.fed))
      if (isOver() && child.connected) child.send('over')
    }
  })
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  watch.end()
  rmSync(place, { recursive: true, force: true })
  if (begun !== undefined) {
    seen += 1
    tell(
      failedAt(begun, `its process ended (${signal ?? code})${watch.isLate ? ', silent for too long' : ''}: ${said}`),
    )
  } else if (seen === 0) throw new Error(`nothing can be fed: ${said}`)
  return seen
}

/** Of one that ended its process nobody knows more than that it was fed one. */
const failedAt = (seed: number, problem: string, fed = 1): Outcome => ({
  seed,
  faults: { [Batches.surfaceOf(seed).name]: fed },
  runs: 0,
  effects: 0,
  problems: [problem],
})

class Watch {
  isLate = false
  readonly #timer: NodeJS.Timeout

  constructor(late: () => void) {
    this.#timer = setTimeout(() => {
      this.isLate = true
      late()
    }, SILENT_MS)
  }

  again(): void {
    this.#timer.refresh()
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}
