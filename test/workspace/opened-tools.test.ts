import { expect, test } from 'vitest'

import { systemClock as clock } from '../../src/base/clock.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import { readConfig } from '../../src/config/config.ts'
import { versionOf } from '../../src/loop/version.ts'
import { openAgents } from '../../src/workers/agents/open-agents.ts'
import { TELL } from '../support/agents.ts'

test('a tool is the same in every tree of a run, and another one outside of them [approvals/bound]', () => {
  const clerk = { model: 'scripted:./x.json', tools: ['shell', 'tell'] }
  const config = readConfig({ agents: { clerk }, tools: { tell: TELL }, policy: [] }, 'c.ts')
  const openIn = (cwd: string) => {
    const place = { cwd, env: {}, codeCache: '/nowhere' }
    const ports = { clock, random, place, store: {} as never, servers: {} as never, warn: () => {} }
    const agent = openAgents({ ...config, folder: cwd }, ports).get('clerk')
    if (agent === undefined || !('toolsIn' in agent)) throw new Error('it has no tools')
    return agent
  }
  const here = openIn('/here')
  for (const tool of clerk.tools) {
    const inTree = versionOf(here.toolsIn?.('/trees/run/1').get(tool))
    expect(versionOf(here.toolsIn?.('/trees/run/2').get(tool))).toBe(inTree)
    expect(versionOf(here.tools.get(tool))).not.toBe(inTree)
    expect(versionOf(openIn('/there').toolsIn?.('/trees/run/1').get(tool))).not.toBe(inTree)
  }
})
