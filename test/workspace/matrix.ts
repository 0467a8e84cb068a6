import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

import { expect } from 'vitest'

import type { RunId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { refOfRun } from '../../src/workspace/workspace.ts'
import type { WorkspaceRequest } from '../../src/workspace/workspace.ts'
import type { Worker } from '../../src/workers/worker.ts'
import type { WorkspacePoint } from '../../src/workers/workspace/ports.ts'
import { builtFixture } from '../support/built-fixture.ts'
import type { TestEngine } from '../support/engines.ts'
import { startProcess, until } from '../support/holdfast.ts'
import type { DoomedScene } from './doomed-scenes.ts'
import { WorkStage } from './work-stage.ts'

const DOOMED = builtFixture(new URL('./doomed-scenes.ts', import.meta.url))

export const isDeep = process.env['HOLDFAST_DEEP'] !== undefined
/** All points and all kills take their time. */
export const LONG_MS = isDeep ? 1_500_000 : 120_000

/** Every nth of them; the deep run takes all. */
export const share = <T>(all: readonly T[], every: number, first = 0): readonly T[] =>
  isDeep ? all : all.filter((_, at) => at % every === first)

export interface Death {
  readonly point: WorkspacePoint
  readonly nth?: number
  readonly engine?: TestEngine
  readonly script: string
  readonly more?: Partial<WorkspaceRequest>
  /** What the person does while nobody is there. */
  readonly meanwhile?: (dead: Dead) => unknown
}

/** A run whose daemon was killed, and how everything of the person was before that. */
export interface Dead {
  readonly stage: WorkStage
  readonly id: RunId
  readonly before: ReturnType<WorkStage['seen']>
}

/** Brings each to its point, and kills the one process that has them all. */
export async function killAt(deaths: readonly Death[]): Promise<readonly Dead[]> {
  const dead: Dead[] = []
  const scenes: DoomedScene[] = []
  for (const { point, nth = 1, engine, script, more } of deaths) {
    const stage = await WorkStage.begin(engine)
    const id = await stage.submit(`echo . >> ${ranIn(stage)}; ${script}`, more)
    dead.push({ stage, id, before: stage.seen() })
    scenes.push({ url: stage.database.url, home: stage.home, env: stage.world.env, point, nth })
  }
  const [first] = dead
  const doomed = startProcess(process.execPath, [DOOMED, JSON.stringify(scenes)], first!.stage.world.env)
  const ended = await doomed.ended
  expect(ended, ended.stderr).toMatchObject({ code: null })
  return dead
}

/** Where each command of a stage says that it has run. */
export const ranIn = ({ world }: WorkStage) => join(world.folder, 'ran')

/** Kills it, lets the person do what they do, has another one take it up, and looks at what became of it; several at a time. */
export async function eachDeath<D extends Death>(
  deaths: readonly D[],
  look: (death: D, dead: Dead, settled: Settled) => Promise<void>,
): Promise<void> {
  // Each has its own connections, and PostgreSQL has no more than a hundred.
  if (deaths.length > MOST_AT_ONCE) await eachDeath(deaths.slice(MOST_AT_ONCE), look)
  const now = deaths.slice(0, MOST_AT_ONCE)
  const dead = await killAt(now)
  const rest = now.map((death, at) => ({ death, each: dead[at]! }))
  const one = async () => {
    for (let next = rest.shift(); next !== undefined; next = rest.shift()) {
      const { death, each } = next
      try {
        await death.meanwhile?.(each)
        await look(death, each, await takeUp(each))
      } catch (error) {
        throw new Error(`killed at ${death.point} (${death.nth ?? 1}): ${String(error)}`, { cause: error })
      }
    }
  }
  await Promise.all(Array.from({ length: TOGETHER }, one))
}

const TOGETHER = 4
const MOST_AT_ONCE = isDeep ? 8 : 16

/** Another one takes up what is left, and looks after it until all is settled. */
export async function takeUp({ stage, id }: Pick<Dead, 'stage' | 'id'>): Promise<Settled> {
  const worker = await stage.worker()
  await worker.start()
  return settledBy(worker, stage, id)
}

export type Settled = Awaited<ReturnType<WorkStage['over']>>

/** Until it is over, with somebody who looks again and again; nothing is left to remove then. */
export async function settledBy(worker: Worker, stage: WorkStage, id: RunId): Promise<Settled> {
  const looking = setInterval(() => void worker.tend(), LIMITS.settleAgainMs / 4)
  try {
    const over = await stage.over(id).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${stage.warnings.join('; ')}`)
    })
    await worker.settled()
    await until('its folder is gone', () => Promise.resolve(existsSync(over.workspace.folder) ? undefined : true))
    return over
  } finally {
    clearInterval(looking)
  }
}

/** What is ours in the person's repository, and where: a ref for what is kept, and otherwise nothing. */
export function oursIn({ world, home }: WorkStage): readonly string[] {
  const git = join(world.project, '.git')
  const refs = world.user(['for-each-ref', '--format=%(refname)', 'refs/holdfast']).split('\n').filter(Boolean)
  const locks = readdirSync(git, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.lock'))
  const stages = existsSync(join(git, 'holdfast')) ? ['holdfast'] : []
  const trees = world.user(['worktree', 'list', '--porcelain']).match(/^worktree /gm) ?? []
  const folders = existsSync(join(home, 'workspaces')) ? readdirSync(join(home, 'workspaces')) : []
  return [...refs, ...locks, ...stages, ...trees.slice(1), ...folders]
}

/** One commit, everything in place, nothing of ours left. */
export async function assertLanded({ stage, id }: Dead, { run, workspace }: Settled): Promise<void> {
  expect([run.state, workspace.state, workspace.reason]).toEqual(['succeeded', 'landed', null])
  expect(stage.world.user(['rev-list', '--count', 'main'])).toBe('2')
  expect([stage.world.tip(), stage.world.status()]).toEqual([workspace.sha, ''])
  expect(readFileSync(ranIn(stage), 'utf8')).toBe('.\n')
  await leaves(stage, [], id)
  await stage.assertSound()
}

/** No commit, everything as before, and nothing of ours but the ref that keeps the work, if there was any. */
export async function assertDiscarded({ stage, id, before }: Dead, { run, workspace }: Settled): Promise<void> {
  expect([run.state, workspace.state]).toEqual([run.state === 'cancelled' ? 'cancelled' : 'failed', 'discarded'])
  expect(stage.seen()).toEqual(before)
  const kept = workspace.work === null ? [] : [refOfRun(id)]
  await leaves(stage, kept, id)
  if (workspace.work !== null) expect(stage.world.tip(refOfRun(id))).toBe(workspace.work)
  await stage.assertSound()
}

/** What is swept is swept a moment after the state is there. */
export async function leaves(stage: WorkStage, kept: readonly string[], id: RunId): Promise<void> {
  let found: readonly string[] = []
  await until(`nothing of ${id} is left`, () => {
    found = oursIn(stage)
    return Promise.resolve(String(found) === String(kept) ? true : undefined)
  }).catch(() => expect(found).toEqual(kept))
}
