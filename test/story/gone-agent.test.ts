import { randomBytes } from 'node:crypto'

import { describe, expect, inject, test } from 'vitest'

import { AgentInstallation } from '../support/agents.ts'
import { withParameters } from '../support/engines.ts'
import { processesWith, until } from '../support/holdfast.ts'

const storeOn = (engine: 'sqlite' | 'postgres'): { store?: string } => {
  if (engine === 'sqlite') return {}
  return { store: withParameters(inject('postgres'), { schema: `story_${randomBytes(6).toString('hex')}` }) }
}

const hold = {
  effect: 'write',
  description: 'Takes its time',
  input: { type: 'object', properties: {} },
  command: ['sh', '-c', 'setsid sleep 300'],
}
const clerk = { replies: [{ toolCalls: [{ tool: 'hold', input: {} }] }], tools: ['hold'], doubt: 'park' }

describe.each([{ engine: 'sqlite' }, { engine: 'postgres' }] as const)('on $engine', ({ engine }) => {
  test('a run under way whose agent has left the configuration is named, and can be cancelled [runs/cancel-is-final]', async () => {
    const place = new AgentInstallation({ agents: { clerk }, tools: { hold } }, storeOn(engine))
    const daemon = await place.daemon()
    const { runId } = await place.send('clerk')
    const processes = () => processesWith(`HOLDFAST_RUN=${runId}`)
    await until('its tool is at work', () => Promise.resolve(processes().length > 0 || undefined))
    daemon.kill('SIGKILL')
    await daemon.ended
    place.configure({ agents: { scribe: clerk }, tools: { hold } })
    await place.daemon()
    const { stdout } = await place.run(['--json', 'doctor'])
    expect(stdout).toContain(`${runId} waits for its agent \\"clerk\\", which nobody has`)
    expect((await place.whole(runId)).state).toBe('running')
    expect((await place.run(['runs', 'cancel', runId])).code).toBe(0)
    expect(await place.whole(runId)).toMatchObject({ state: 'cancelled', actions: [{ state: 'in_doubt' }] })
    expect(processes()).toEqual([])
  })
})
