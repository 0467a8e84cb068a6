import { expect, test } from 'vitest'

import { systemClock as clock } from '../../src/base/clock.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import { readConfig } from '../../src/config/config.ts'
import { createRuntime } from '../../src/runtime.ts'
import type { Tool } from '../../src/loop/ports.ts'
import { openAllAgents } from '../../src/workers/agents/open-agents.ts'
import { temporaryFolder } from '../support/engines.ts'

const fieldsOf = (tool: Tool | undefined) => Object.keys(tool?.inputSchema['properties'] ?? {})

test('a job starts no more than its agent can start itself', () => {
  const agent = (...tools: string[]) => ({ model: 'scripted:./x.json', tools: ['manage_jobs', ...tools] })
  const config = readConfig(
    { agents: { plain: agent(), boss: agent('delegate'), admin: agent('shell') }, policy: [] },
    'c.ts',
  )
  const warnings: string[] = []
  const place = { cwd: '/', env: {}, codeCache: '/nowhere' }
  const ports = { clock, random, place, store: {} as never, servers: {} as never }
  const agents = openAllAgents({ ...config, folder: '/' }, { ...ports, warn: (words) => warnings.push(words) })
  const jobs = (name: string) => {
    const opened = agents.get(name)
    return opened !== undefined && 'tools' in opened ? opened.tools.get('manage_jobs') : undefined
  }
  expect(fieldsOf(jobs('plain'))).not.toContain('agent')
  expect(fieldsOf(jobs('plain'))).not.toContain('command')
  expect(fieldsOf(jobs('boss'))).toContain('agent')
  expect(jobs('boss')?.inputSchema).toMatchObject({ properties: { agent: { enum: ['plain', 'admin'] } } })
  expect(fieldsOf(jobs('admin'))).toEqual(expect.arrayContaining(['command', 'folder']))
  expect(warnings).toEqual([])
})

test('the agent for webhooks is there without a configuration, and is no agent of the user', async () => {
  const runtime = await createRuntime({ home: temporaryFolder() })
  expect(runtime.agents).toEqual([])
  expect([...((await runtime.toolsOf('holdfast:webhook'))?.keys() ?? [])]).toEqual(['webhook'])
  await runtime.close()
})
