import { join } from 'node:path'

import { systemClock } from '../../src/base/clock.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import type { FunctionBody } from '../../src/define/function.ts'
import type { WorkerKind } from '../../src/runs/worker.ts'
import type { Store } from '../../src/store/store.ts'
import type { AnyAgent } from '../../src/workers/agents/execute-agent.ts'
import { registerThisProcess } from '../../src/workers/register.ts'
import { temporaryFolder } from './engines.ts'
import { LEASE_MS } from './world.ts'

/** A worker of this process, with a home of its own, that carries out one run at a time. */
export const oneWorker = (
  store: Store,
  agents: ReadonlyMap<string, AnyAgent> = new Map(),
  kind: WorkerKind = 'daemon',
) =>
  registerThisProcess({
    store,
    agents,
    clock: systemClock,
    random,
    home: join(temporaryFolder(), 'home'),
    kind,
    leaseMs: LEASE_MS,
    limits: {},
    concurrency: 1,
    graceMs: 1_000,
    warn: () => {},
  })

/** One that has the function `payer`. */
export const aPayer = (store: Store, body: FunctionBody, kind?: WorkerKind) =>
  oneWorker(store, new Map([['payer', { name: 'payer', body }]]), kind)
