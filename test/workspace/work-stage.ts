import { join } from 'node:path'

import { onTestFinished } from 'vitest'

import { systemClock as clock } from '../../src/base/clock.ts'
import { newRunId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId } from '../../src/base/ids.ts'
import { thisPlace } from '../../src/processes/identity.ts'
import { findRun, isTerminal } from '../../src/runs/run.ts'
import type { Run } from '../../src/runs/run.ts'
import { submitRun } from '../../src/runs/submit.ts'
import type { Store } from '../../src/store/store.ts'
import { findWorkspace } from '../../src/workspace/workspace.ts'
import type { Workspace, WorkspaceRequest } from '../../src/workspace/workspace.ts'
import type { AnyAgent } from '../../src/workers/agents/execute-agent.ts'
import { registerThisProcess } from '../../src/workers/register.ts'
import type { Worker } from '../../src/workers/worker.ts'
import type { WorkspacePoint } from '../../src/workers/workspace/ports.ts'
import { engines } from '../support/engines.ts'
import type { TestDatabase, TestEngine } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { GitWorld, listing } from './git-world.ts'

export const sqlite = engines.find(({ name }) => name === 'sqlite')!

const OVER = ['landed', 'ready', 'discarded', 'quarantined', 'kept', 'would_land', 'would_discard']

/** A person's repository, a database, and workers that are this process. */
export class WorkStage {
  readonly world: GitWorld
  readonly home: string
  readonly database: TestDatabase
  readonly store: Store

  private constructor(world: GitWorld, database: TestDatabase, store: Store) {
    this.world = world
    this.home = join(world.folder, 'holdfast')
    this.database = database
    this.store = store
  }

  static async begin(engine: TestEngine = sqlite, world = new GitWorld()): Promise<WorkStage> {
    await world.start()
    const database = await engine.database()
    return new WorkStage(world, database, await database.open())
  }

  /** A daemon; `point` is called, and waited for, wherever one could die. */
  async worker(
    point?: (name: WorkspacePoint) => void | Promise<void>,
    agents?: ReadonlyMap<string, AnyAgent>,
    env: Readonly<Record<string, string>> = this.world.env,
  ): Promise<Worker> {
    const worker = await registerThisProcess({
      store: this.store,
      clock,
      random,
      home: this.home,
      kind: 'command',
      leaseMs: 15_000,
      limits: {},
      concurrency: 16,
      graceMs: 1_000,
      warn: (message) => this.warnings.push(message),
      workspaces: { env, ...(point === undefined ? {} : { point }) },
      ...(agents === undefined ? {} : { agents }),
    })
    onTestFinished(() => worker.stop())
    return worker
  }

  readonly warnings: string[] = []

  /** A script in a transaction of its own. */
  async submit(script: string, more: Partial<WorkspaceRequest> = {}): Promise<RunId> {
    const workspace: WorkspaceRequest = { root: this.world.project, mode: 'transaction', ...more }
    const answer = await this.store.apply(submitRun, {
      id: newRunId(random),
      threadId: newThreadId(random),
      agent: 'command',
      host: thisPlace().host,
      request: {
        kind: 'command',
        argv: ['/bin/sh', '-ec', script],
        cwd: this.world.project,
        env: this.world.env,
        workspace,
      },
    })
    if (answer.kind !== 'submitted') throw new Error(answer.kind)
    return answer.run.id
  }

  run(id: RunId): Promise<Run> {
    return this.store.read(findRun, id).then((run) => run!)
  }

  workspace(id: RunId): Promise<Workspace> {
    return this.store.read(findWorkspace, id).then((found) => found!)
  }

  /** Once the run has ended and everything that follows from it is done. */
  async over(id: RunId): Promise<{ readonly run: Run; readonly workspace: Workspace }> {
    return until('the run and its files are settled', async () => {
      const [run, workspace] = [await this.run(id), await this.store.read(findWorkspace, id)]
      if (!isTerminal(run.state)) return undefined
      return workspace !== undefined && OVER.includes(workspace.state) ? { run, workspace } : undefined
    })
  }

  /** Submits it, carries it out, and waits for the end of it all. */
  async through(script: string, more: Partial<WorkspaceRequest> = {}) {
    const id = await this.submit(script, more)
    const worker = await this.worker()
    await worker.perform(id)
    return this.over(id)
  }

  /** The person's tree and branch, and what git has of ours there. */
  seen(): { readonly files: Record<string, string>; readonly tip: string; readonly status: string } {
    return { files: listing(this.world.project), tip: this.world.tip(), status: this.world.status() }
  }

  /** Nothing broken, in the repository and in the database. */
  async assertSound(): Promise<void> {
    this.world.fsck()
    await assertInvariants(this.store)
  }
}
