import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'

import type { Campaign, Outcome } from '../method.ts'

/** Each job has a process of its own, in which the world is simulated, and every so manieth of the seeds. */
export async function inJobs(script: string, campaign: Campaign): Promise<void> {
  const jobs = Math.min(availableParallelism(), campaign.most)
  await Promise.all(Array.from({ length: jobs }, (_, job) => oneJob(script, campaign, job, jobs)))
}

/** One process, and of all seeds the share of this job. */
export async function oneJob(
  script: string,
  { first, most, isOver, tell }: Campaign,
  job: number,
  jobs: number,
  more: readonly string[] = [],
): Promise<void> {
  const share = Math.ceil((most - job) / jobs)
  const args = [script, String(first + job), String(jobs), String(share), ...more]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  let told = 0
  for await (const line of createInterface({ input: child.stdout })) {
    tell(JSON.parse(line) as Outcome)
    told += 1
    // Its seeds are told one by one, so the ones that follow are a later campaign's.
    if (isOver()) child.stdin.end()
  }
  const [code] = (await exited) as [number | null]
  if (code !== 0) throw new Error(`a simulation broke after ${told} of ${share} worlds`)
}

/** What a process of its own prints. */
export async function printedBy(script: string, args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [script, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  await once(child, 'exit')
  return printed.trim()
}
