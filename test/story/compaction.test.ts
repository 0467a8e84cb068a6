import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { AgentInstallation } from '../support/agents.ts'
import { chatServer } from '../support/chat-server.ts'
import type { ChatReply, ChatRequest } from '../support/chat-server.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'

const PAGES = 6
const PRICE = { input: 2, output: 10, cacheRead: 0.5 }

const isSide = ({ messages }: ChatRequest) => JSON.stringify(messages[0]?.content).includes('put the history')

test('a daemon killed with SIGKILL while the older part is summarised: the summary is asked for again, everything else once', async () => {
  const [turns, sides]: [ChatRequest[], ChatRequest[]] = [[], []]
  let holding = true
  const url = await chatServer((request): ChatReply | undefined => {
    if (isSide(request)) {
      sides.push(request)
      return holding ? undefined : { text: 'Pages were read.', inputTokens: 1_000, outputTokens: 10, cachedTokens: 400 }
    }
    turns.push(request)
    const page = turns.length
    return page <= PAGES ? { call: ['files_read', { path: `page-${page}.txt` }] } : { text: 'All read.' }
  })
  const model = `openai-compatible:${url}/test`
  const reader = { model, tools: ['files_read'], contextTokens: 2_000 }
  const place = new AgentInstallation(
    { agents: { reader }, prices: { [model]: PRICE } },
    { env: { OPENAI_API_KEY: 'k' } },
  )
  for (let page = 1; page <= PAGES; page++)
    writeFileSync(join(place.folder, `page-${page}.txt`), `page ${page}: ${'word '.repeat(500)}`)
  const daemon = await place.daemon()
  const { runId } = await place.send('reader')
  await until('the summary is asked for', () => Promise.resolve(sides.length > 0 || undefined))
  const before = turns.length
  daemon.kill('SIGKILL')
  await daemon.ended
  holding = false
  await place.daemon()
  const run = await place.ended(runId)
  expect(run).toMatchObject({ state: 'succeeded', result: { text: 'All read.' } })
  expect(turns).toHaveLength(PAGES + 1)
  expect(run.actions.map(({ state, tool }) => [tool, state])).toEqual(
    Array.from({ length: PAGES }, () => ['files_read', 'done']),
  )
  expect(JSON.stringify(turns[before]?.messages)).toContain('Pages were read.')
  // Each answered side call on the bill: 600 new tokens, 400 from the cache, 10 out.
  const answered = sides.length - 1
  expect(run.usage.costUsd).toBeCloseTo((answered * (600 * 2 + 400 * 0.5 + 10 * 10)) / 1_000_000, 9)
  await assertInvariants(await place.store())
})
