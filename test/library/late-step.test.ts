import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { expect, onTestFinished, test } from 'vitest'

import { createRuntime, defineFunction } from '../../src/index.ts'
import { temporaryFolder } from '../support/engines.ts'

const begunAndOver = `select count(*) as n from steps s join runs r on r.seq = s.run_seq where r.state = 'succeeded' and s.state = 'started'`

/** So far behind the function's own end comes what it does not wait for. */
const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn += 1) await Promise.resolve()
}

test.each([0, 1, 2, 4, 8, 12, 16, 24, 40])(
  'what a function does not wait for does not begin once its run has ended, %i turns later [actions/no-blind-retry]',
  async (behind) => {
    const home = join(temporaryFolder(), 'home')
    const [hold, begun] = [Promise.withResolvers<void>(), { late: 0 }]
    const branching = defineFunction<number>('branching', async (run) => {
      await run.step('first', () => 1)
      // Half of them have a next step when the others end: in one commit a step may come before the end of another run.
      if (run.input % 2 === 0) {
        await run.step('second', () => 2)
        return run.step('third', () => 3)
      }
      const late = async () => {
        await turns(behind)
        await run.step('late', async () => {
          begun.late += 1
          await hold.promise
        })
      }
      void late()
      return 1
    })
    const runtime = await createRuntime({ home, agents: [branching], warn: () => {} })
    onTestFinished(() => runtime.close())
    await runtime.start()
    const calls = Array.from({ length: 40 }, (_, input) => ({ function: 'branching', input }))
    const results = (await runtime.callAll(calls)).map((call) => call.result())
    // Those whose late step has begun wait for it, and the others end.
    await expect.poll(() => underWay(home) <= begun.late, { timeout: 10_000 }).toBe(true)
    const over = looked(home, begunAndOver)
    hold.resolve()
    await Promise.all(results)
    expect(over).toBe(0)
    expect(looked(home, begunAndOver)).toBe(0)
  },
)

const underWay = (home: string) => looked(home, `select count(*) as n from runs where state in ('queued', 'running')`)

function looked(home: string, question: string): number {
  const database = new DatabaseSync(join(home, 'holdfast.db'), { readOnly: true })
  try {
    return Number(database.prepare(question).get()?.['n'])
  } finally {
    database.close()
  }
}
