import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
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
import { HOOK, NODE, makeStage, realClient, run, stopSays } from './support.ts'

const GEMINI = realClient('gemini')

/** A model behind Gemini's interface, on loopback; `meanwhile` happens before each answer. */
async function startGeminiServer(meanwhile: () => Promise<void>) {
  const asked: string[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    if (request.url?.includes('streamGenerateContent') !== true) return void response.end('{}')
    asked.push(JSON.stringify((JSON.parse(text) as { contents: unknown }).contents))
    await meanwhile()
    const content = { role: 'model', parts: [{ text: `reply ${asked.length}` }] }
    const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 3, totalTokenCount: 8 }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(
      `data: ${JSON.stringify({ candidates: [{ content, finishReason: 'STOP', index: 0 }], usageMetadata })}\r\n\r\n`,
    )
  }
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

test.skipIf(GEMINI === undefined)(
  'children finish while a real Gemini CLI is in its turn: its next request has each of them once, and it is one turn [M1] [inbox/busy-parent]',
  async () => {
    const installation = new Installation()
    const { home } = installation
    await installation.run(['status'])
    const store = await openSqliteStore({ path: join(home, 'holdfast.db') })
    onTestFinished(() => store.close())
    let told = 0
    const model = await startGeminiServer(async () => {
      const [turn] = await store.read(listRuns, { limit: 1 })
      for (const name of told === 0 ? ['a-x', 'b-x'] : []) {
        const input = JSON.stringify(stopSays(`the words of ${name}`, {}, { session: name }))
        await hear({ store, random }, { client: 'claude', input, ordinal: 1, shown: null, startedFrom: turn!.threadId })
        told += 1
      }
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
