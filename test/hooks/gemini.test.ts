import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { systemRandomness as random } from '../../src/base/ids.ts'
import { hear } from '../../src/hooks/hear.ts'
import { wantedHandlers } from '../../src/hooks/install/entries.ts'
import { listRuns } from '../../src/runs/run.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { Installation } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { startGeminiServer } from './gemini-server.ts'
import { HOOK, NODE, makeStage, realClient, run, stopSays } from './support.ts'

const GEMINI = realClient('gemini')

test.skipIf(GEMINI === undefined)(
  'children finish while a real Gemini CLI is in its turn: its next request has each of them once, and it is one turn [M1] [inbox/busy-parent]',
  async () => {
    const installation = new Installation()
    const { home } = installation
    await installation.run(['status'])
    const store = await openSqliteStore({ path: join(home, 'holdfast.db') })
    onTestFinished(() => store.close())
    let told = 0
    const model = await startGeminiServer(async (_, number) => {
      const [turn] = await store.read(listRuns, { limit: 1 })
      for (const name of told === 0 ? ['a-x', 'b-x'] : []) {
        const input = JSON.stringify(stopSays(`the words of ${name}`, {}, { session: name }))
        await hear({ store, random }, { client: 'claude', input, ordinal: 1, shown: null, startedFrom: turn!.threadId })
        told += 1
      }
      return `reply ${number}`
    })
    const stage = makeStage({}, { GEMINI_API_KEY: 'dummy', GOOGLE_GEMINI_BASE_URL: model.url, HOLDFAST_HOME: home })
    const place = { client: 'gemini', node: NODE, script: HOOK, home, store: undefined, daemon: undefined } as const
    const hooks = [...wantedHandlers({ ...place, startDaemon: false, permissions: false })].map(([event, hook]) => [
      event,
      [{ hooks: [hook] }],
    ])
    mkdirSync(join(stage.userHome, '.gemini'))
    writeFileSync(
      join(stage.userHome, '.gemini', 'settings.json'),
      JSON.stringify({
        hooks: Object.fromEntries(hooks) as object,
        security: { auth: { selectedType: 'gemini-api-key' } },
        privacy: { usageStatisticsEnabled: false },
        general: { disableAutoUpdate: true, disableUpdateNag: true },
      }),
    )
    const args = ['-m', 'gemini-2.5-flash', '-p', 'conduct', '-o', 'json']
    const { code } = await run(GEMINI!, args, {
      env: { ...stage.env, GEMINI_CLI_TRUST_WORKSPACE: 'true' },
      cwd: stage.folder,
    })
    expect(code).toBe(0)
    const times = (text: string, words: string) => text.split(words).length - 1
    expect(model.asked.map((text) => [times(text, 'words of a-x'), times(text, 'words of b-x')])).toEqual([
      [0, 0],
      [1, 1],
    ])
    const turns = (await store.read(listRuns, { limit: 10 })).filter(({ agent }) => agent === 'gemini')
    expect(turns).toMatchObject([{ state: 'succeeded' }])
    const messages = await store.read(messagesOf, turns[0]!.threadId)
    expect(messages.map(({ state }) => state)).toEqual(['consumed', 'consumed'])
    await assertInvariants(store)
  },
)
