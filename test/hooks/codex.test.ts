import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { hear } from '../../src/hooks/hear.ts'
import { wantedHandlers } from '../../src/hooks/install/entries.ts'
import { listRuns } from '../../src/runs/run.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { Installation } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { startResponsesServer } from './responses-server.ts'
import type { Request } from './responses-server.ts'
import { HOOK, NODE, makeKiller, makeStage, realClient, run, stopSays } from './support.ts'

const CODEX = realClient('codex')

const configuration = (url: string, home: string) => `model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
notify = ["${NODE}", "${HOOK}", "codex", "--home", "${home}"]
[model_providers.scripted]
name = "scripted"
base_url = "${url}"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
`

/** Codex in a home of its own, with our hooks and its `notify`; `stopHook` stands before ours at the end of a turn. */
async function makeCodex(script: (request: Request) => Promise<string>, stopHook?: string) {
  const installation = new Installation()
  const { home } = installation
  const model = await startResponsesServer(script)
  const stage = makeStage({}, { SCRIPTED_KEY: 'dummy', HOLDFAST_HOME: home })
  const own = join(stage.userHome, '.codex')
  mkdirSync(own)
  writeFileSync(join(own, 'config.toml'), configuration(model.url, home))
  const place = { client: 'codex', node: NODE, script: HOOK, home, store: undefined, daemon: undefined } as const
  const hooks = [...wantedHandlers({ ...place, startDaemon: false, permissions: false })].map(([event, handler]) => {
    const command =
      event === 'Stop' && stopHook !== undefined ? `${NODE} ${stopHook} ${HOOK} codex` : handler['command']
    return [event, [{ hooks: [{ ...handler, command }] }]]
  })
  writeFileSync(join(own, 'hooks.json'), JSON.stringify({ hooks: Object.fromEntries(hooks) as object }))
  await installation.run(['status'])
  const store = await openSqliteStore({ path: join(home, 'holdfast.db') })
  onTestFinished(() => store.close())
  const ask = async (...words: string[]) => {
    const args = ['exec', '--json', '--skip-git-repo-check', '--dangerously-bypass-hook-trust', ...words]
    const { stdout } = await run(CODEX!, args, { env: stage.env, cwd: stage.folder })
    return /"thread_id":"([^"]+)"/.exec(stdout)?.[1] ?? ''
  }
  return { store, model, ask, installation }
}

const timesIn = ({ texts }: Request, words: string) => texts.join('\n').split(words).length - 1

async function childStops(store: Store, parent: string, name: string, times = 1): Promise<void> {
  const input = JSON.stringify(stopSays(`the words of ${name}`, {}, { session: name }))
  const told = { client: 'claude', input, ordinal: 1, shown: null, startedFrom: parent } as const
  for (let time = 0; time < times; time += 1) await hear({ store, random }, told)
}

test.skipIf(CODEX === undefined)(
  'children finish while a real Codex is in its turn: its next request has each of them once, and its notify adds nothing [M1] [M3] [inbox/busy-parent]',
  async () => {
    let meanwhile = async () => {}
    const { store, model, ask, installation } = await makeCodex(async () => {
      await meanwhile()
      return 'done'
    })
    await installation.up()
    meanwhile = async () => {
      meanwhile = async () => {}
      const [turn] = await store.read(listRuns, { limit: 1 })
      for (const name of ['a-x', 'b-x']) await childStops(store, turn!.threadId, name)
      await childStops(store, turn!.threadId, 'twice-x', 2)
    }
    const session = await ask('conduct')
    expect(model.asked).toHaveLength(2)
    const words = ['a-x', 'b-x', 'twice-x'].map((name) => `the words of ${name}`)
    expect(words.map((each) => timesIn(model.asked[0]!, each))).toEqual([0, 0, 0])
    expect(words.map((each) => timesIn(model.asked[1]!, each))).toEqual([1, 1, 1])
    const messages = await store.read(messagesOf, `codex-${session}` as ThreadId)
    expect(messages.map(({ state }) => state)).toEqual(['consumed', 'consumed', 'consumed'])
    const turns = (await store.read(listRuns, { limit: 20 })).filter(({ agent }) => agent === 'codex')
    expect(turns).toMatchObject([{ state: 'succeeded', result: { text: 'done' } }])
    await assertInvariants(store)
  },
)

test.skipIf(CODEX === undefined)(
  'a real Codex that is killed between the answer of its Stop and the next request gets the messages again, and never a third time [M5]',
  async () => {
    const killer = makeKiller()
    const { store, model, ask } = await makeCodex(async () => 'done', killer.path)
    const session = await ask('begin')
    await childStops(store, `codex-${session}`, 'child-x')
    const words = 'the words of child-x'
    await ask('resume', session, 'go on')
    expect(killer.answer()).toContain(words)
    expect(model.asked.map((request) => timesIn(request, words))).toEqual([0, 0])
    await ask('resume', session, 'and now?')
    expect(model.asked.map((request) => timesIn(request, words))).toEqual([0, 0, 0, 1])
    await ask('resume', session, 'anything else?')
    expect(timesIn(model.asked.at(-1)!, words)).toBe(1)
    expect(await store.read(messagesOf, `codex-${session}` as ThreadId)).toMatchObject([{ state: 'consumed' }])
    await assertInvariants(store)
  },
)
