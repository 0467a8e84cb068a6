import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

import { campaign as campaignOf } from '../../faults/campaign.ts'
import { merge } from '../../faults/merge.ts'
import type { Campaign, Outcome } from '../../faults/method.ts'
import { inProcesses } from '../../faults/processes.ts'
import { nextOf, progressOf } from '../../faults/rounds.ts'
import { leastThatFails } from '../../faults/shorter.ts'
import { Tally } from '../../faults/tally.ts'
import { emptyTotal, enter, readTotals } from '../../faults/totals.ts'
import type { CampaignTotal, Total, Totals } from '../../faults/totals.ts'
import { until } from '../support/until.ts'

const SIZE = 10

/** A campaign that told these seeds. */
function campaign(seeds: readonly number[], commit = 'abc1234', round?: number): CampaignTotal {
  const tally = new Tally(commit, seeds[0] ?? 1, round === undefined ? undefined : { size: SIZE, number: round })
  tellAll(tally, seeds)
  return tally.entry()
}

function tellAll(tally: Tally, seeds: readonly number[]): void {
  for (const seed of seeds)
    tally.tell({ seed, faults: { kill: 2 }, runs: 1, effects: 3, recoveryMs: 50, peaks: { MiB: seed }, problems: [] })
}

const totalOf = (...campaigns: readonly CampaignTotal[]): Total => {
  const total = emptyTotal('A title', 'cases')
  for (const each of campaigns) enter(total, each)
  return total
}

const seeds = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, at) => first + at)

describe('a method that is a table', () => {
  test('a campaign goes on with the first case that is missing, and after the last the next round begins', () => {
    expect(nextOf([], SIZE)).toMatchObject({ number: 1, first: 1, most: SIZE })
    const begun = [campaign([1, 2, 4], 'a', 1)]
    expect(nextOf(begun, SIZE)).toMatchObject({ number: 1, first: 3, most: 8 })
    const whole = [...begun, campaign(seeds(3, 10), 'b', 1)]
    expect(nextOf(whole, SIZE)).toMatchObject({ number: 2, first: 1, most: SIZE })
    expect(nextOf(whole, SIZE + 1)).toMatchObject({ number: 2, first: 1, most: SIZE + 1 })
  })

  test('one that has as many cases, but others, is another table', () => {
    const of = (digest: string, number: number, told: readonly number[]) => {
      const tally = new Tally('abc1234', 1, { size: SIZE, digest, number })
      tellAll(tally, told)
      return tally.entry()
    }
    const begun = [of('one', 1, seeds(1, 6))]
    expect(nextOf(begun, SIZE, 'one')).toMatchObject({ number: 1, first: 7, digest: 'one' })
    expect(nextOf(begun, SIZE, 'other')).toMatchObject({ number: 2, first: 1, most: SIZE, digest: 'other' })
    const both = [...begun, of('other', 1, seeds(7, 10))]
    expect(progressOf(both)).toMatchObject({ now: { distinct: 4, digest: 'other' } })
    expect(progressOf(both).whole).toBeUndefined()
  })

  test('its cases are counted once in a round, with the commits at which they were told', () => {
    const parts = [campaign(seeds(1, 6), 'a', 1), campaign(seeds(4, 9), 'b', 1)]
    expect(progressOf(parts)).toEqual({ now: { size: SIZE, number: 1, distinct: 9, commits: ['a', 'b'] } })
    const more = [...parts, campaign([10], 'b', 1), campaign([1, 2], 'c', 2)]
    expect(progressOf(more)).toEqual({
      whole: { size: SIZE, number: 1, distinct: 10, commits: ['a', 'b'] },
      now: { size: SIZE, number: 2, distinct: 2, commits: ['c'] },
    })
  })
})

describe('counters of two clones', () => {
  test('are put together, and what both have is counted once', () => {
    const past = campaign(seeds(1, 4))
    const [left, right] = [campaign(seeds(5, 6)), campaign(seeds(100, 104))]
    const one: Totals = { kill: totalOf(past, left), soak: totalOf(past) }
    const other: Totals = { kill: totalOf(past, right), postgres: totalOf(past) }
    const { kill, soak, postgres } = merge(one, other)
    expect(kill).toMatchObject({ cases: 11, runs: 11, effects: 33, faults: { kill: 22 }, peaks: { MiB: 104 } })
    expect(kill).toMatchObject({ nextSeed: 105, recovery: [11, 0, 0, 0, 0, 0, 0, 0, 0, 0] })
    expect(kill!.campaigns).toHaveLength(3)
    expect([soak!.cases, postgres!.cases]).toEqual([4, 4])
    expect(merge(merge(one, other), other)).toEqual(merge(one, other))
    expect(merge(other, one).kill).toMatchObject({ cases: 11, runs: 11, seconds: kill!.seconds })
  })

  test('one that was copied while a campaign was under way has less of it, and that is replaced', () => {
    const tally = new Tally('abc1234', 1)
    tellAll(tally, [1, 2])
    const early: Totals = { kill: totalOf(tally.entry()) }
    tellAll(tally, [3, 4, 5])
    const late: Totals = { kill: totalOf(tally.entry()) }
    for (const merged of [merge(early, late), merge(late, early)])
      expect(merged.kill).toMatchObject({ cases: 5, faults: { kill: 10 }, campaigns: [{ cases: 5 }] })
  })

  test('campaigns without figures of their own are taken from the sums that hold them, or refused', () => {
    const { id: _, own: __, ...bare } = campaign(seeds(1, 3))
    const old = { ...totalOf(campaign(seeds(1, 3))), campaigns: [bare] }
    const own = campaign(seeds(4, 5))
    expect(merge({ kill: totalOf(own) }, { kill: old }).kill).toMatchObject({ cases: 5, runs: 5 })
    const another = { ...old, campaigns: [{ ...bare, at: '2026-01-01T00:00' }] }
    expect(() => merge({ kill: another }, { kill: old })).toThrow('no figures of its own')
  })
})

/** A process of ours, and what it has said. */
function started(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  return { child, exited: once(child, 'close'), said: () => said }
}

test('a campaign writes down how far it is, and has counted all that it was told when it is interrupted', async () => {
  const totals = join(mkdtempSync(join(tmpdir(), 'campaign-')), 'totals.json')
  const source = new URL('../../faults/campaign.ts', import.meta.url).href
  // Cases without end, each of which is over at once.
  const script = `const { campaign, endWhenAsked } = await import('${source}')
    const run = async ({ first, isOver, tell }) => {
      for (let seed = first; !isOver(); seed++) {
        tell({ seed, faults: { kill: 1 }, runs: 1, effects: 1, problems: [] })
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
    }
    endWhenAsked()
    const settings = { minutes: 60, most: 1_000_000_000, totals: '${totals}', keepMinutes: 0.001 }
    await campaign({ name: 'kill', title: 'Kills', cases: 'kills', run }, settings)`
  const told = () => readTotals(totals).kill?.cases ?? 0
  const { child, exited, said } = started(['--input-type=module', '--eval', script])
  await until('something is written down', async () => (told() > 0 ? true : undefined), 60_000)
  child.kill('SIGTERM')
  await exited
  const { cases, campaigns, nextSeed } = readTotals(totals).kill!
  expect(cases).toBe(Number(/^(\d+) kills/m.exec(said())?.[1]))
  expect({ campaigns: campaigns.length, nextSeed }).toEqual({ campaigns: 1, nextSeed: cases + 1 })
})

test('a case that breaks, and one whose process does, are failing ones', async () => {
  const script = join(mkdtempSync(join(tmpdir(), 'campaign-')), 'worker.ts')
  const processes = new URL('../../faults/processes.ts', import.meta.url).href
  writeFileSync(
    script,
    `import { playUntilToldToStop } from '${processes}'
    await playUntilToldToStop(async (seed) => {
      if (seed === 2) throw new Error('a store that cannot be closed')
      if (seed > 2) process.exit(3)
      return { faults: {}, runs: 1, effects: 1, problems: [] }
    })`,
  )
  const told: Outcome[] = []
  await inProcesses({ first: 1, most: 4, isOver: () => false, tell: (outcome) => told.push(outcome) }, script)
  const problems = told.toSorted((a, b) => a.seed - b.seed).map(({ seed, problems: found }) => [seed, ...found])
  const ended = 'it broke: its process ended (3)'
  expect(problems).toEqual([[1], [2, 'it broke: a store that cannot be closed'], [3, ended], [4, ended]])
})

test('a campaign that breaks has a failing case in its counters', async () => {
  const totals = join(mkdtempSync(join(tmpdir(), 'campaign-')), 'totals.json')
  const run = async ({ first, tell }: Campaign) => {
    tell({ seed: first, faults: {}, runs: 1, effects: 1, problems: [] })
    throw new Error('the daemon did not start')
  }
  const settings = { minutes: 1, most: 10, totals, keepMinutes: 1 }
  expect(await campaignOf({ name: 'kill', title: 'Kills', cases: 'kills', run }, settings)).toBe(1)
  expect(readTotals(totals).kill).toMatchObject({ cases: 2, failures: 1, campaigns: [{ failed: [2] }] })
})

test('a plan is made shorter as long as it fails, however rarely that is', async () => {
  let tried = 0
  // With a and c in it, every second time.
  const problemsOf = async (plan: string) => (/a.*c/.test(plan) && ++tried % 2 === 0 ? [`${plan} failed`] : [])
  const shorter = (plan: string) => Array.from(plan, (_, at) => plan.slice(0, at) + plan.slice(at + 1))
  expect(await leastThatFails('abcd', shorter, problemsOf)).toEqual({ plan: 'ac', problems: ['ac failed'] })
  expect(await leastThatFails('bd', shorter, problemsOf)).toBeUndefined()
})

test('a PostgreSQL server does not outlive the campaign that began it, however that ends', async () => {
  const support = new URL('../support/postgres-server.ts', import.meta.url).href
  const script = `const { PostgresServer } = await import('${support}')
    await PostgresServer.create({ fsync: false })
    console.log('it answers')
    setInterval(() => {}, 1_000)`
  const folder = mkdtempSync(join(tmpdir(), 'campaign-'))
  // The server is another user where this is root.
  chmodSync(folder, 0o755)
  const { child, exited, said } = started(['--input-type=module', '--eval', script], { TMPDIR: folder })
  await until('it answers', async () => (said().includes('it answers') ? true : undefined), 60_000)
  const [made = ''] = readdirSync(folder)
  const pid = Number(readFileSync(join(folder, made, 'data', 'postmaster.pid'), 'utf8').split('\n')[0])
  expect(isAlive(pid)).toBe(true)
  child.kill('SIGKILL')
  await exited
  await until('the server is gone', async () => (isAlive(pid) ? undefined : true), 60_000)
  await until('its folder is gone', async () => (readdirSync(folder).length === 0 ? true : undefined), 60_000)
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
