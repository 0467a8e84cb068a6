import { DatabaseSync } from 'node:sqlite'

import { describe, expect, test } from 'vitest'

import { countingStore } from '../support/counting-store.ts'
import type { Counted } from '../support/counting-store.ts'
import { engines } from '../support/engines.ts'
import { Stage } from '../support/stage.ts'

const isDeep = process.env.HOLDFAST_DEEP !== undefined
const STEPS = isDeep ? 400 : 160
/** Two places of the run that are compared, each of so many steps. */
const [EARLY, LATE, SPAN] = isDeep ? [20, 360, 40] : [20, 120, 40]

const between = (from: Counted, to: Counted): Counted => ({
  statements: to.statements - from.statements,
  rows: to.rows - from.rows,
  characters: to.characters - from.characters,
})

/** Statements that would read a whole table. */
function wholeTables(path: string, texts: readonly string[]): string[] {
  const database = new DatabaseSync(path)
  try {
    return texts.flatMap((text) => {
      const plan = database.prepare(`explain query plan ${text}`).all(...Array(text.split('?').length - 1).fill(null))
      return plan.some(({ detail }) => /^SCAN (?!CONSTANT)/.test(String(detail))) ? [text] : []
    })
  } finally {
    database.close()
  }
}

describe.each(engines)('a long run on $name', (engine) => {
  test('a step late in it costs what an early one does: the same statements, the same rows', async () => {
    const database = await engine.database()
    const counting = countingStore(await database.open())
    const stage = new Stage(counting.store)
    stage.limits = { turns: STEPS + 1 }
    // Always the same call, a different one each time, and one that repeats a write: whatever is looked up by signature.
    const calls = (index: number) =>
      [
        ['look', { entry: 'same' }],
        ['look', { entry: `${index}` }],
        ['append', { entry: 'once' }],
      ] as const
    const places: Counted[] = []
    stage.answer = ({ replies: nth }) => {
      places.push(counting.now())
      const toolCalls = calls(nth).map(([tool, input], call) => ({ id: `call_${nth}_${call}`, tool, input }))
      const usage = { inputTokens: 10, outputTokens: 1, costMicrousd: 1 }
      const ended = { text: 'done', toolCalls: [], usage, finish: 'stop' } as const
      const reply = nth === STEPS ? ended : ({ text: '', toolCalls, usage, finish: 'tool-calls' } as const)
      stage.asked.length = 0
      return Promise.resolve({ kind: 'replied', reply, spent: usage })
    }
    await stage.send('go')
    expect(await stage.finished(await stage.claim())).toMatchObject({ state: 'succeeded' })
    const early = between(places[EARLY]!, places[EARLY + SPAN]!)
    const late = between(places[LATE]!, places[LATE + SPAN]!)
    expect({ statements: late.statements, rows: late.rows }).toEqual({ statements: early.statements, rows: early.rows })
    expect(late.characters).toBeLessThan(early.characters * 1.1)
    if (engine.name === 'sqlite')
      expect(wholeTables(database.url.replace('sqlite:', ''), counting.texts().filter(isOfStep))).toEqual([])
  })
})

/** What registers workers and claims runs is not part of a step. */
const isOfStep = (text: string) => /\b(entries|actions|messages)\b/.test(text)
