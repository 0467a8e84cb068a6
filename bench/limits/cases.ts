/** What is compared, under the names that the targets have (bench/page/targets.ts): the product, and the raw rows of the same work. */
import { join } from 'node:path'

import { median } from '../bench.ts'
import type { Engine } from '../bench.ts'
import type { Home } from '../product.ts'
import * as rawPostgres from './raw-postgres.ts'
import * as rawSqlite from './raw-sqlite.ts'
import type { Lap, Watch } from './watch.ts'
import * as workloads from './workloads.ts'

const STEPS = 10

export interface Case {
  readonly name: string
  readonly engine: Engine
  readonly unit: string
  readonly better: 'high' | 'low'
  readonly rounds: number
  readonly figure: (laps: readonly Lap[]) => number
  readonly product: (home: Home, watch: Watch) => Promise<void>
  readonly raw: (home: Home, watch: Watch) => Promise<void>
}

export interface Sizes {
  readonly rounds: number
  readonly flows: number
  readonly calls: number
  readonly jobs: number
  readonly firings: number
  readonly seconds: number
  /** Each takes as many seconds as the jobs are spread over. */
  readonly firingRounds: number
}

const rate = (count: number) => ({
  unit: '/s',
  better: 'high' as const,
  figure: (laps: readonly Lap[]) => count / (laps[0]!.ms / 1_000),
})

export const fileOf = ({ home }: Home) => join(home, 'holdfast.db')

export function casesOf(sizes: Sizes): Case[] {
  return [...onSqlite(sizes), ...onPostgres(sizes)]
}

function onSqlite({ rounds, flows, jobs, firings, seconds, firingRounds }: Sizes): Case[] {
  const instants = Array.from({ length: firings }, () => Math.round(Math.random() * seconds * 1_000))
  const shared = { engine: 'sqlite', rounds } as const
  return [
    {
      ...shared,
      ...rate(flows * STEPS),
      name: 'W1, SQLite, steps/s, 64 callers',
      product: (home, watch) => workloads.steps(home, flows, STEPS, watch),
      raw: (home, watch) => rawSqlite.rawSteps(fileOf(home), flows, STEPS, watch),
    },
    {
      ...shared,
      ...rate(jobs),
      name: 'W3, SQLite, enqueue, one a call',
      product: (home, watch) => workloads.singles(home, jobs, watch),
      raw: (home, watch) => rawSqlite.rawSingles(fileOf(home), jobs, watch),
    },
    {
      ...shared,
      ...rate(jobs),
      name: 'W3, SQLite, enqueue, in bulk',
      product: (home, watch) => workloads.bulk(home, jobs, watch),
      raw: (home, watch) => rawSqlite.rawBulk(fileOf(home), jobs, watch),
    },
    {
      ...shared,
      ...rate(jobs),
      name: 'W3, SQLite, drain',
      product: (home, watch) => workloads.drain(home, jobs, watch),
      raw: (home, watch) => rawSqlite.rawDrain(fileOf(home), jobs, watch),
    },
    {
      ...shared,
      rounds: firingRounds,
      unit: 's',
      better: 'low',
      figure: (laps) => laps[0]!.processorMs / 1_000,
      name: 'W4, SQLite, processor time, worker and server',
      product: (home, watch) => workloads.due(home, instants, watch),
      raw: (home, watch) => rawSqlite.rawDue(fileOf(home), instants, watch),
    },
  ]
}

function onPostgres({ rounds, calls, jobs }: Sizes): Case[] {
  const rests = Array.from({ length: calls }, () => 5 + Math.random() * 25)
  const shared = { engine: 'postgres', rounds } as const
  return [
    {
      ...shared,
      unit: 'ms',
      better: 'low',
      // With its share of the call and the end.
      figure: (laps) => median(laps.map(({ ms }) => ms)) / STEPS,
      name: 'W1, PostgreSQL, a step, 1 caller',
      product: (home, watch) => workloads.alone(home, calls, STEPS, watch),
      raw: ({ store }, watch) => rawPostgres.rawAlone(store!, calls, STEPS, watch),
    },
    {
      ...shared,
      unit: 'ms',
      better: 'low',
      figure: (laps) => median(laps.map(({ ms }) => ms)),
      name: 'W2, PostgreSQL, submit to result, p50',
      product: (home, watch) => workloads.results(home, rests, watch),
      raw: ({ store }, watch) => rawPostgres.rawResults(store!, rests, watch),
    },
    {
      ...shared,
      ...rate(jobs),
      name: 'W3, PostgreSQL, enqueue, in bulk',
      product: (home, watch) => workloads.bulk(home, jobs, watch),
      raw: ({ store }, watch) => rawPostgres.rawBulk(store!, jobs, watch),
    },
    {
      ...shared,
      ...rate(jobs),
      name: 'W3, PostgreSQL, drain',
      product: (home, watch) => workloads.drain(home, jobs, watch),
      raw: ({ store }, watch) => rawPostgres.rawDrain(store!, jobs, watch),
    },
  ]
}
