import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'

import type { Campaign, Outcome } from './method.ts'
import { broken, played } from './played.ts'

/** No case takes so long: whoever says nothing any more hangs. */
const SILENCE_MS = 5 * 60_000
const HANGS = `nothing was heard of it for ${SILENCE_MS / 60_000} minutes`

/** Cases in as many processes as there are cores: each is `node SCRIPT FIRST EVERY MOST`, and prints an outcome a line. */
export async function inProcesses(campaign: Campaign, script: string): Promise<void> {
  const jobs = Math.min(availableParallelism(), campaign.most)
  await Promise.all(Array.from({ length: jobs }, (_, job) => oneProcess(campaign, script, job, jobs)))
}

async function oneProcess({ first, most, isOver, tell }: Campaign, script: string, job: number, jobs: number) {
  const share = Math.ceil((most - job) / jobs)
  const args = [script, String(first + job), String(jobs), String(share)]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  let told = 0
  let isSilent = false
  const giveUp = () => (isSilent = child.kill('SIGKILL'))
  let patience = setTimeout(giveUp, SILENCE_MS)
  for await (const line of createInterface({ input: child.stdout })) {
    clearTimeout(patience)
    patience = setTimeout(giveUp, SILENCE_MS)
    tell(JSON.parse(line) as Outcome)
    told += 1
    if (isOver()) child.stdin.end()
  }
  clearTimeout(patience)
  const [code, signal] = (await exited) as [number | null, string | null]
  if (isSilent || code !== 0) {
    const why = isSilent ? HANGS : `its process ended (${signal ?? code})`
    tell(broken(first + job + told * jobs, why))
  }
}

/** The other side: case after case, until nobody wants more. */
export async function playUntilToldToStop(play: (seed: number) => Promise<Omit<Outcome, 'seed'>>): Promise<void> {
  const [first = 1, every = 1, most = 1] = process.argv.slice(2).map(Number)
  const enough = new AbortController()
  process.stdin.on('end', () => enough.abort()).resume()
  for (let each = 0; each < most && !enough.signal.aborted; each += 1) {
    const seed = first + each * every
    process.stdout.write(`${JSON.stringify(await played(seed, () => play(seed)))}\n`)
    // What is said on standard input is heard between two cases.
    await new Promise((resolve) => setImmediate(resolve))
  }
  process.exit(0)
}
