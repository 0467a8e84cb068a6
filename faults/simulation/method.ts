import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'

import type { Campaign, Method, Outcome } from '../method.ts'

/** The real engine, workers and loop in one seeded thread, on a simulated clock, with something going wrong at any statement. */
export const simulation: Method = {
  name: 'simulation',
  title: 'A seeded world in one thread: three workers, a parent with five children, a schedule, approvals and doubts',
  cases: 'worlds',
  async run(campaign) {
    const jobs = Math.min(availableParallelism(), campaign.most)
    await Promise.all(Array.from({ length: jobs }, (_, job) => oneJob(campaign, job, jobs)))
  },
}

async function oneJob({ first, most, isOver, tell }: Campaign, job: number, jobs: number): Promise<void> {
  const script = new URL('worker.ts', import.meta.url).pathname
  const share = Math.ceil((most - job) / jobs)
  const args = [script, String(first + job), String(jobs), String(share)]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  let told = 0
  for await (const line of createInterface({ input: child.stdout })) {
    tell(JSON.parse(line) as Outcome)
    told += 1
    // Its seeds are told one by one, so the ones that follow are a later campaign's.
    if (isOver()) child.stdin.end()
  }
  await exited
  if (told < share && !isOver()) throw new Error(`a simulation ended after ${told} of ${share} worlds`)
}
