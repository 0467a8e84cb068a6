import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { approvalsOfRun } from '../../src/actions/approval.ts'
import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import { readStatement, viewStatement } from '../../src/actions/statement.ts'
import { newMessageId, newRunId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId } from '../../src/base/ids.ts'
import { sendMessage } from '../../src/runs/send.ts'
import type { Store } from '../../src/store/store.ts'
import { builtFixture } from '../support/built-fixture.ts'
import { temporaryFolder, usualEngines } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { processesWith, startProcess } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { reread } from '../support/world.ts'

const DESK = builtFixture(new URL('./fixtures/doomed-desk.ts', import.meta.url))
const TOOL = fileURLToPath(new URL('../support/ledger-tool.mjs', import.meta.url))
const FLAVOURS = ['plain', 'keyed', 'probed'] as const
const DEEP = process.env['HOLDFAST_DEEP'] !== undefined
/** 300 runs and 200 kills in the deep run, over both engines. */
const KILLS = DEEP ? 100 : 6
const RUNS = DEEP ? 150 : 9
/** A kill anywhere in here falls into the life of a daemon that has a few runs to carry out. */
const POINTS = 400
/** About as long as a tool takes to start and to write. */
const TOOL_MS = 120

/** The same every time, so that a failure can be looked at again. */
function lots(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

async function world(engine: TestEngine) {
  const folder = temporaryFolder()
  const [home, ledger, config] = [
    join(folder, 'home'),
    join(folder, 'ledger.txt'),
    join(folder, 'holdfast.config.json'),
  ]
  mkdirSync(home)
  writeFileSync(ledger, '')
  const tools = FLAVOURS.map((flavour) => [
    `ledger_${flavour}`,
    {
      effect: 'write',
      description: 'Append one entry',
      input: { type: 'object', properties: { entry: { type: 'string' } }, required: ['entry'] },
      identity: ['entry'],
      command: ['node', TOOL, 'append', ledger, ...(flavour === 'keyed' ? ['keyed'] : [])],
      ...(flavour === 'keyed' ? { idempotent: true } : {}),
      ...(flavour === 'probed' ? { probe: ['node', TOOL, 'probe', ledger] } : {}),
    },
  ])
  const call = (flavour: string, entry: string) => ({ tool: `ledger_${flavour}`, input: { entry } })
  for (const flavour of FLAVOURS) {
    const replies = [
      { toolCalls: [call(flavour, 'one'), call(flavour, 'two')] },
      { toolCalls: [call(flavour, 'two'), call(flavour, 'three')] },
      { text: 'done' },
    ]
    writeFileSync(join(folder, `${flavour}.json`), JSON.stringify({ replies }))
  }
  const agents = FLAVOURS.map((flavour) => [
    flavour,
    { model: `scripted:./${flavour}.json`, tools: [`ledger_${flavour}`] },
  ])
  writeFileSync(config, JSON.stringify({ agents: Object.fromEntries(agents), tools: Object.fromEntries(tools) }))
  const database = await engine.database()
  const store = await database.open()
  const live = async (nth: number, ...whom: readonly string[]) => {
    const ended = await startProcess(process.execPath, [DESK, database.url, home, config, String(nth), ...whom], {})
      .ended
    if (nth === 0 && !ended.stdout.includes('survived')) throw new Error(`it did not come to an end: ${ended.stderr}`)
    return ended.stdout.includes('survived')
  }
  const send = async (flavour: string): Promise<RunId> => {
    const ids = { messageId: newMessageId(random), runId: newRunId(random), threadId: newThreadId(random) }
    await store.apply(sendMessage, { ...ids, agent: flavour, text: 'go', key: ids.messageId })
    return ids.runId
  }
  const lines = () => readFileSync(ledger, 'utf8').split('\n').filter(Boolean)
  const supervisorsKilled = () =>
    existsSync(join(home, 'killed')) ? readFileSync(join(home, 'killed'), 'utf8').split('\n').filter(Boolean).length : 0
  return { store, live, send, lines, supervisorsKilled }
}

/** What the independent ledger says against what a run's statement says. */
async function disagreements(store: Store, runs: readonly RunId[], lines: readonly string[]): Promise<string[]> {
  const keys = lines.map((line) => line.split(' ')[1]!)
  const found: string[] = []
  const said = new Set<string>()
  for (const runId of runs) {
    const { effects, withoutEffect } = viewStatement((await store.read(readStatement, runId))!)
    for (const { actionId, state } of effects) {
      said.add(actionId)
      const written = keys.filter((key) => key === actionId).length
      if (written > 1) found.push(`${actionId} was written ${written} times`)
      if (state === 'done' && written === 0) found.push(`${actionId} is said to be done and is not in the ledger`)
      if (state === 'started') found.push(`${actionId} is under way although nobody is there`)
    }
    for (const { actionId, state } of withoutEffect)
      if (keys.includes(actionId)) found.push(`${actionId} is in the ledger and is said to be ${state}`)
    const approvals = await store.read(approvalsOfRun, runId)
    const used = approvals.filter(({ state }) => state === 'consumed').map(({ actionId }) => actionId)
    for (const { actionId } of effects)
      if (!used.includes(actionId)) found.push(`${actionId} was begun without an approval that was used up by it`)
  }
  return [...found, ...keys.filter((key) => !said.has(key)).map((key) => `nobody says that ${key} was written`)]
}

/** A person looks into the ledger, which is what a person has. */
async function settleDoubts(store: Store, lines: readonly string[]): Promise<number> {
  const doubts = await store.read(openDoubts, 1_000)
  for (const { id } of doubts) {
    const happened = lines.some((line) => line.endsWith(` ${id}`))
    await store.apply(resolveDoubt, id, { kind: happened ? 'happened' : 'run-again', by: 'ann', why: 'the ledger' })
  }
  return doubts.length
}

test.each(usualEngines)(
  'killed again and again with actions that people approve: each write at most once, the statement is the ledger, on $name [actions/once] [actions/no-blind-retry] [W7]',
  { timeout: DEEP ? 3_600_000 : 120_000 },
  async (engine) => {
    const { store, live, send, lines, supervisorsKilled } = await world(engine)
    const next = lots(engine.name === 'sqlite' ? 7 : 11)
    const runs: RunId[] = []
    let [kills, doubts] = [0, 0]
    for (let round = 0; kills < KILLS && round < KILLS * 3; round++) {
      const due = Math.ceil((RUNS * (round + 1)) / KILLS)
      while (runs.length < Math.min(RUNS, due)) runs.push(await send(FLAVOURS[runs.length % FLAVOURS.length]!))
      // In the first half the supervisors live on: whatever happens, nothing may come into doubt.
      const spared = kills < KILLS / 2
      const survived = await live(
        1 + Math.floor(next() * POINTS),
        ...(spared ? [] : [String(Math.floor(next() * TOOL_MS))]),
      )
      if (survived && runs.length === RUNS) runs.push(await send(FLAVOURS[round % FLAVOURS.length]!))
      kills += survived ? 0 : 1
      await assertInvariants(store)
      if (kills === Math.ceil(KILLS / 2) && spared) {
        await live(0)
        expect(await store.read(openDoubts, 10)).toEqual([])
        expect(await disagreements(store, runs, lines())).toEqual([])
      }
    }
    for (;;) {
      await live(0)
      expect(await disagreements(store, runs, lines())).toEqual([])
      const settled = await settleDoubts(store, lines())
      if (settled === 0) break
      doubts += settled
    }
    // Nothing in doubt without cause.
    expect(doubts).toBeLessThanOrEqual(supervisorsKilled())
    expect(kills).toBeGreaterThanOrEqual(KILLS)
    expect(lines()).toHaveLength(runs.length * 3)
    for (const runId of runs) {
      expect((await reread(store, runId)).state).toBe('succeeded')
      expect(processesWith(`HOLDFAST_RUN=${runId}`)).toEqual([])
    }
    await assertInvariants(store)
    console.log(
      `${engine.name}: ${runs.length} runs, ${kills} kills, ${supervisorsKilled()} supervisors too, ${doubts} doubts`,
    )
  },
)
