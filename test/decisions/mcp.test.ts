import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { pendingApprovals } from '../../src/actions/approval.ts'
import { AgentInstallation } from '../support/agents.ts'
import { usualEngines } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'

const SERVER = fileURLToPath(new URL('../tools/fixtures/mcp-server.mjs', import.meta.url))
const ADD = { toolCalls: [{ tool: 'polite__add', input: { entry: 'a' } }] }

/** An agent that adds a line through an MCP server, once a day. */
async function world(engine: TestEngine, policy: readonly unknown[]) {
  const place = new AgentInstallation({ agents: {} }, { store: (await engine.database()).url })
  const polite = {
    command: process.execPath,
    args: [SERVER, join(place.folder, 'lines')],
    once: { add: { per: 'agent', within: '24h' } },
  }
  const configure = (more: object = {}) =>
    place.configure({
      agents: { clerk: { replies: [ADD, { text: 'Done.' }], tools: ['mcp:polite'] } },
      mcpServers: { polite: { ...polite, ...more } },
      policy,
    })
  configure()
  const lines = () => {
    const file = join(place.folder, 'lines')
    const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
    return text.split('\n').flatMap((line) => /^add (\S+)/.exec(line)?.[1] ?? [])
  }
  const asked = () => until('somebody is asked', async () => (await (await place.store()).read(pendingApprovals, 1))[0])
  return { place, lines, asked, configure }
}

test.each(usualEngines)(
  'a call of an MCP tool is changed by the schema that was accepted, without its server, and is one for a day, on $name [approvals/bound] [W2]',
  async (engine) => {
    const { place, lines, asked } = await world(engine, [])
    const daemon = await place.daemon()
    const { runId } = await place.send('clerk')
    const first = await asked()
    const edit = (input: string) => place.run(['--json', 'approvals', 'edit', first.id, '--input', input])
    expect(await edit('{"entry": 7}')).toMatchObject({ code: 2, stderr: expect.stringContaining('entry') as string })
    expect(await edit('{"line": "b"}')).toMatchObject({ code: 2 })
    const changed = await edit('{"entry": "b"}')
    expect(changed).toMatchObject({ code: 0 })
    const { id, input } = JSON.parse(changed.stdout) as { readonly id: string; readonly input: unknown }
    expect([input, lines()]).toEqual([{ entry: 'b' }, []])
    expect(await place.run(['approvals', 'approve', id])).toMatchObject({ code: 0 })
    expect(await place.ended(runId)).toMatchObject({ state: 'succeeded' })
    expect(lines()).toEqual(['b'])

    // What another run wants is changed to what was done today: that is answered from it.
    const again = await place.send('clerk')
    const second = await asked()
    const same = await place.run(['--json', 'approvals', 'edit', second.id, '--input', '{"entry": "b"}'])
    await place.run(['approvals', 'approve', (JSON.parse(same.stdout) as { readonly id: string }).id])
    const { actions } = await place.ended(again.runId)
    expect(actions.at(-1)).toMatchObject({ state: 'done', repeatOf: expect.any(String) as string })
    expect(lines()).toEqual(['b'])
    daemon.kill('SIGTERM')
    await daemon.ended
  },
)

test('another command behind the server is another tool: what was approved is not done by it [approvals/bound]', async () => {
  const { place, lines, asked, configure } = await world(usualEngines[0]!, [])
  const daemon = await place.daemon()
  const { runId } = await place.send('clerk')
  const { id } = await asked()
  daemon.kill('SIGTERM')
  await daemon.ended
  await place.run(['approvals', 'approve', id])
  configure({ args: [SERVER, join(place.folder, 'lines'), ''] })
  const other = await place.daemon()
  const { actions } = await place.ended(runId)
  expect(actions).toMatchObject([{ state: 'denied', error: expect.stringContaining('not the one any more') as string }])
  expect(lines()).toEqual([])
  other.kill('SIGTERM')
  await other.ended
})
