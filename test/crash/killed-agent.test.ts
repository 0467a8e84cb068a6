import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { describe, expect, test } from 'vitest'

import { actionsOfRun } from '../../src/actions/action.ts'
import type { Action } from '../../src/actions/action.ts'
import { readStatement, viewStatement } from '../../src/actions/statement.ts'
import { newMessageId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId, ThreadId } from '../../src/base/ids.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { builtFixture } from '../support/built-fixture.ts'
import { temporaryFolder } from '../support/engines.ts'
import { processesWith, startProcess } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { reread } from '../support/world.ts'

const DOOMED = builtFixture(new URL('./doomed-agent.ts', import.meta.url))
const TOOL = fileURLToPath(new URL('../support/ledger-tool.mjs', import.meta.url))
const MOST_POINTS = 600
const DEEP = process.env.HOLDFAST_DEEP !== undefined
/** Each death is two daemons and several tools: a sample of the points normally, all of them in the deep run. */
const STEP = DEEP ? 1 : 48
const TOGETHER = 3

const FLAVOURS = {
  plain: {},
  idempotent: { idempotent: true },
  'with a probe': { probe: true },
} as const
type Flavour = keyof typeof FLAVOURS

const ENTRIES = ['one', 'two', 'three']

interface Scene {
  readonly home: string
  readonly path: string
  readonly config: string
  readonly ledger: string
  readonly runId: RunId
}

async function prepare(flavour: Flavour): Promise<Scene> {
  const folder = temporaryFolder()
  const [home, ledger, config] = [
    join(folder, 'home'),
    join(folder, 'ledger.txt'),
    join(folder, 'holdfast.config.json'),
  ]
  mkdirSync(home)
  writeFileSync(ledger, '')
  const command = ['node', TOOL, 'append', ledger, ...(flavour === 'idempotent' ? ['keyed'] : [])]
  const tool = {
    effect: 'write',
    description: 'Append one entry',
    input: { type: 'object', properties: { entry: { type: 'string' } }, required: ['entry'] },
    identity: ['entry'],
    command,
    ...(flavour === 'idempotent' ? { idempotent: true } : {}),
    ...(flavour === 'with a probe' ? { probe: ['node', TOOL, 'probe', ledger] } : {}),
  }
  // No person is there to say what became of a write that was cut off.
  const agent = { model: 'scripted:./script.json', tools: ['ledger_append'], doubt: 'tell' }
  const policy = [{ tool: 'ledger_append', decision: 'allow' }]
  writeFileSync(config, JSON.stringify({ agents: { clerk: agent }, tools: { ledger_append: tool }, policy }))
  const calls = (entries: readonly string[]) => entries.map((entry) => ({ tool: 'ledger_append', input: { entry } }))
  const replies = [{ toolCalls: calls(['one', 'two']) }, { toolCalls: calls(['two', 'three']) }, { text: 'done' }]
  writeFileSync(join(folder, 'script.json'), JSON.stringify({ replies }))
  const path = join(home, 'holdfast.db')
  const store = await openSqliteStore({ path })
  const ids = { messageId: newMessageId(random), runId: newRunId(random), threadId: 'ledger' as ThreadId }
  await store.apply(sendMessage, { ...ids, agent: 'clerk', text: 'write', key: 'write' })
  await store.close()
  return { home, path, config, ledger, runId: ids.runId }
}

const daemon = ({ path, home, config }: Scene, nth: number, how: readonly string[] = []) =>
  startProcess(process.execPath, [DOOMED, path, home, config, String(nth), ...how], {}).ended

async function dieAt(flavour: Flavour, nth: number, how: readonly string[]) {
  const scene = await prepare(flavour)
  const { stdout } = await daemon(scene, nth, how)
  const after = await daemon(scene, 0)
  if (!after.stdout.includes('survived')) throw new Error(`the second daemon did not come to an end: ${after.stderr}`)
  const store = await openSqliteStore({ path: scene.path })
  await assertInvariants(store)
  const [run, actions] = [await reread(store, scene.runId), await store.read(actionsOfRun, scene.runId)]
  const statement = viewStatement((await store.read(readStatement, scene.runId))!)
  await store.close()
  const lines = readFileSync(scene.ledger, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => line.split(' ')[0]!)
  return {
    survived: stdout.includes('survived'),
    state: run.state,
    lines,
    actions,
    statement,
    left: processesWith(`HOLDFAST_RUN=${scene.runId}`),
  }
}

/** What the independent ledger says against what we say: at most one line an action, a missing one is in doubt. */
function account(lines: readonly string[], actions: readonly Action[]): string[] {
  const performed = actions.filter(({ repeatOf }) => repeatOf === null)
  return ENTRIES.flatMap((entry) => {
    const written = lines.filter((line) => line === entry).length
    const states = performed
      .filter(({ input }) => (input as { entry: string }).entry === entry)
      .map(({ state }) => state)
    if (written > 1) return [`${entry} was written ${written} times`]
    if (states.includes('done') && written === 0) return [`${entry} is said to be done and is not in the ledger`]
    if (written === 1 && !states.includes('done') && !states.includes('in_doubt'))
      return [`${entry} is in the ledger and nobody says so`]
    return []
  })
}

type StatementView = ReturnType<typeof viewStatement>

/** The statement says of each line of the ledger that it was written, and of none that it was not; doubts apart. */
function stated({ effects }: StatementView, lines: readonly string[]): string[] {
  const named = (state: string) =>
    effects.filter((effect) => effect.state === state).map(({ input }) => (input as { entry: string }).entry)
  const [done, open] = [named('done'), named('in_doubt')]
  return [
    ...lines.filter((line) => !done.includes(line) && !open.includes(line)).map((line) => `${line} is not stated`),
    ...done.filter((entry) => !lines.includes(entry)).map((entry) => `${entry} is stated and was not written`),
    ...done.filter((entry, index) => done.indexOf(entry) < index).map((entry) => `${entry} is stated twice`),
    ...(effects.every(({ allowedBy, startedAt, settledAt }) => allowedBy && startedAt && settledAt)
      ? []
      : ['an effect without who allowed it, or when']),
  ]
}

/** Each flavour begins a little later, so that together they see more of the points. */
const firstOf = (flavour: Flavour) => (DEEP ? 1 : 1 + 8 * Object.keys(FLAVOURS).indexOf(flavour))

describe.each(Object.keys(FLAVOURS) as Flavour[])('an agent with a ledger tool, %s', (flavour) => {
  test('its daemon killed at any point: each write once, all of them settled [actions/once] [W7]', async () => {
    let deaths = 0
    for (let nth = firstOf(flavour); nth < MOST_POINTS; nth += STEP * TOGETHER) {
      const ends = await Promise.all(
        Array.from({ length: TOGETHER }, (_, index) => dieAt(flavour, nth + index * STEP, [])),
      )
      for (const [index, { state, lines, actions, statement, left }] of ends.entries()) {
        const where = `killed at point ${nth + index * STEP}`
        expect(stated(statement, lines), where).toEqual([])
        expect(account(lines, actions), where).toEqual([])
        // Its supervisor outlived the daemon, so nothing is in doubt.
        expect({ state, lines: lines.toSorted(), left }, where).toEqual({
          state: 'succeeded',
          lines: ENTRIES.toSorted(),
          left: [],
        })
      }
      deaths += ends.filter(({ survived }) => !survived).length
      if (ends.some(({ survived }) => survived)) break
    }
    console.log(`${flavour}: killed at ${deaths} points`)
    expect(deaths).toBeGreaterThan(4)
  })

  test('daemon and supervisor killed together: never twice, and what is missing is in doubt [actions/no-blind-retry]', async () => {
    const counted: Record<string, number> = {}
    // From the moment that the first write has a supervisor, over the time that it takes.
    for (let afterMs = 0; afterMs < 480; afterMs += DEEP ? 6 : 160) {
      const { state, lines, actions, statement, left } = await dieAt(flavour, 1, [String(afterMs)])
      expect(account(lines, actions), `killed ${afterMs} ms after its supervisor was there`).toEqual([])
      expect(stated(statement, lines), `killed ${afterMs} ms after its supervisor was there`).toEqual([])
      expect({ state, left }).toEqual({ state: 'succeeded', left: [] })
      const doubts = actions.filter((action) => action.state === 'in_doubt').length
      if (flavour !== 'plain')
        expect({ doubts, lines: lines.toSorted() }).toEqual({ doubts: 0, lines: ENTRIES.toSorted() })
      counted[`${lines.length} lines, ${doubts} in doubt`] =
        (counted[`${lines.length} lines, ${doubts} in doubt`] ?? 0) + 1
    }
    console.log(`${flavour}: supervisor killed too:`, counted)
  })
})
