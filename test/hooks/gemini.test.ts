import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { hear } from '../../src/hooks/hear.ts'
import { wantedHandlers } from '../../src/hooks/install/entries.ts'
import { listRuns } from '../../src/runs/run.ts'
import type { Run } from '../../src/runs/run.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { Installation, until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { startGeminiServer } from './gemini-server.ts'
import { HOOK, NODE, makeKiller, makeStage, realClient, run, stopSays } from './support.ts'

const GEMINI = realClient('gemini')

/** Gemini CLI in a home of its own, with our hooks; `endHook` stands before ours at the end of a turn. */
async function makeGemini(script: (store: Store, number: number) => Promise<string>, endHook?: string) {
  const installation = new Installation()
  const { home } = installation
  // A hook that has nobody to tell is slow on a busy machine, and may leave its event in the spool for later.
  await installation.up()
  const store = await openSqliteStore({ path: join(home, 'holdfast.db') })
  onTestFinished(() => store.close())
  const model = await startGeminiServer((_, number) => script(store, number))
  const stage = makeStage({}, { GEMINI_API_KEY: 'dummy', GOOGLE_GEMINI_BASE_URL: model.url, HOLDFAST_HOME: home })
  const place = { client: 'gemini', node: NODE, script: HOOK, home, store: undefined, daemon: undefined } as const
  const hooks = [...wantedHandlers({ ...place, startDaemon: false, permissions: false })].map(([event, handler]) => {
    const isEnd = event === 'AfterAgent' && endHook !== undefined
    const command = isEnd ? `${NODE} ${endHook} ${HOOK} gemini` : handler['command']
    return [event, [{ hooks: [{ ...handler, command }] }]]
  })
  mkdirSync(join(stage.userHome, '.gemini'))
  const settings = {
    hooks: Object.fromEntries(hooks) as object,
    security: { auth: { selectedType: 'gemini-api-key' } },
    privacy: { usageStatisticsEnabled: false },
    general: { disableAutoUpdate: true, disableUpdateNag: true },
  }
  writeFileSync(join(stage.userHome, '.gemini', 'settings.json'), JSON.stringify(settings))
  // One process: it would start itself again with more memory, and there would be two to kill.
  const env = { ...stage.env, GEMINI_CLI_TRUST_WORKSPACE: 'true', GEMINI_CLI_NO_RELAUNCH: 'true' }
  const ask = (prompt: string, ...flags: string[]) =>
    run(GEMINI!, ['-m', 'gemini-2.5-flash', ...flags, '-p', prompt, '-o', 'json'], { env, cwd: stage.folder })
  return { store, model, ask }
}

async function childStops(store: Store, parent: ThreadId, name: string): Promise<void> {
  const input = JSON.stringify(stopSays(`the words of ${name}`, {}, { session: name }))
  await hear({ store, random }, { client: 'claude', input, ordinal: 1, shown: null, startedFrom: parent })
}

const times = (text: string, words: string) => text.split(words).length - 1

const hasEnded = ({ state }: Run) => state !== 'running'

const turnsOf = async (store: Store) =>
  (await store.read(listRuns, { limit: 10 })).filter(({ agent }) => agent === 'gemini')

test.skipIf(GEMINI === undefined)(
  'children finish while a real Gemini CLI is in its turn: its next request has each of them once, and it is one turn [M1] [inbox/busy-parent]',
  async () => {
    const { store, model, ask } = await makeGemini(async (there, number) => {
      const [turn] = await there.read(listRuns, { limit: 1 })
      for (const name of number === 1 ? ['a-x', 'b-x'] : []) await childStops(there, turn!.threadId, name)
      return `reply ${number}`
    })
    expect((await ask('conduct')).code).toBe(0)
    expect(model.asked.map((text) => [times(text, 'words of a-x'), times(text, 'words of b-x')])).toEqual([
      [0, 0],
      [1, 1],
    ])
    const turn = await until('its turn has ended', async () => (await turnsOf(store)).find(hasEnded))
    expect(await turnsOf(store)).toMatchObject([{ state: 'succeeded' }])
    const messages = await store.read(messagesOf, turn.threadId)
    expect(messages.map(({ state }) => state)).toEqual(['consumed', 'consumed'])
    await assertInvariants(store)
  },
)

test.skipIf(GEMINI === undefined)(
  'a real Gemini CLI that is killed between the answer at the end of its turn and the next request gets the messages again, and never a third time [M5]',
  async () => {
    const killer = makeKiller()
    const { store, model, ask } = await makeGemini(async (_, number) => `reply ${number}`, killer.path)
    await ask('begin')
    const { threadId } = await until('its first turn has ended', async () => (await turnsOf(store)).find(hasEnded))
    await childStops(store, threadId, 'child-x')
    const words = 'the words of child-x'
    await ask('go on', '--resume', 'latest')
    expect(killer.answer()).toContain(words)
    expect(model.asked.map((text) => times(text, words))).toEqual([0, 0])
    expect(await store.read(messagesOf, threadId)).toMatchObject([{ state: 'leased' }])
    await ask('and now?', '--resume', 'latest')
    expect(model.asked.map((text) => times(text, words))).toEqual([0, 0, 0, 1])
    expect(await store.read(messagesOf, threadId)).toMatchObject([{ state: 'consumed' }])
    await ask('anything else?', '--resume', 'latest')
    expect(times(model.asked.at(-1)!, words)).toBe(1)
    await assertInvariants(store)
  },
)
