import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'

import type { Campaign, Outcome } from '../method.ts'
import { broken } from '../played.ts'

/** No world takes so long: whoever says nothing any more hangs. */
const SILENCE_MS = 5 * 60_000
/** Of what it said last, when it broke. */
const LAST_WORDS = 2_000

/** Each job has a process of its own, in which the world is simulated, and every so manieth of the seeds. */
export async function inJobs(script: string, campaign: Campaign): Promise<void> {
  const jobs = Math.min(availableParallelism(), campaign.most)
  await Promise.all(Array.from({ length: jobs }, (_, job) => oneJob(script, campaign, job, jobs)))
}

/** Of all seeds the share of this job. A world at which its process breaks has failed, and another process goes on after it. */
export async function oneJob(
  script: string,
  campaign: Campaign,
  job: number,
  jobs: number,
  more: readonly string[] = [],
): Promise<void> {
  const { first, most, isOver, tell } = campaign
  const share = Math.ceil((most - job) / jobs)
  // Of one that said nothing at all it is not known whether a world broke it, until the next one says something.
  let silent: Outcome | undefined
  for (let told = 0; told < share && !(told > 0 && isOver());) {
    const seed = first + job + told * jobs
    const ended = await oneProcess([script, String(seed), String(jobs), String(share - told), ...more], campaign)
    told += ended.told
    const isSilent = ended.broke !== undefined && ended.told === 0
    if (isSilent && silent !== undefined) throw new Error(`two processes in a row said nothing: ${ended.broke}`)
    if (silent !== undefined) tell(silent)
    silent = undefined
    if (ended.broke === undefined) return
    const failed = broken(first + job + told * jobs, ended.broke)
    if (isSilent) silent = failed
    else tell(failed)
    told += 1
  }
  if (silent !== undefined) tell(silent)
}

interface Ended {
  readonly told: number
  /** Undefined: it ended by itself, when nobody wanted more or there is no more. */
  readonly broke?: string
}

async function oneProcess(args: readonly string[], { isOver, tell }: Campaign): Promise<Ended> {
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  const exited = once(child, 'close')
  // Who is gone hears nothing.
  child.stdin.on('error', () => {})
  let told = 0
  let said = ''
  let isSilent = false
  const giveUp = () => (isSilent = child.kill('SIGKILL'))
  let patience = setTimeout(giveUp, SILENCE_MS)
  child.stderr.on('data', (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-LAST_WORDS)))
  for await (const line of createInterface({ input: child.stdout })) {
    clearTimeout(patience)
    patience = setTimeout(giveUp, SILENCE_MS)
    tell(JSON.parse(line) as Outcome)
    told += 1
    // It comes to the end of the world that it is at.
    if (isOver()) child.stdin.end()
  }
  const [code, signal] = (await exited) as [number | null, NodeJS.Signals | null]
  clearTimeout(patience)
  if (isSilent) return { told, broke: `nothing was heard of it for ${SILENCE_MS / 60_000} minutes` }
  return code === 0 ? { told } : { told, broke: `${signal ?? `exit ${code}`} ${said.trim()}` }
}

/** What a process of its own prints. */
export async function printedBy(script: string, args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [script, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
    timeout: 2 * SILENCE_MS,
    killSignal: 'SIGKILL',
  })
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  if (code !== 0) throw new Error(`${script} ${args.join(' ')} broke: ${signal ?? `exit ${code}`}`)
  return printed.trim()
}
