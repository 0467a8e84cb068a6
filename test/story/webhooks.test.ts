import { randomBytes } from 'node:crypto'

import { describe, expect, inject, test } from 'vitest'

import { newScheduleId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ScheduleId } from '../../src/base/ids.ts'
import { addSchedule } from '../../src/schedule/edit.ts'
import { listOccurrences } from '../../src/schedule/occurrence.ts'
import type { Occurrence } from '../../src/schedule/occurrence.ts'
import { DEFAULT_OPTIONS } from '../../src/schedule/schedule.ts'
import { Receiver, nobody } from '../schedule/receiver.ts'
import { AgentInstallation } from '../support/agents.ts'
import { usualEngines, withParameters } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'

/** As somebody has it who never wrote an agent down. No rule says anything about webhooks. */
function install(engine: 'sqlite' | 'postgres'): AgentInstallation {
  const settings = { agents: {}, policy: [], webhooks: { secret: '${HOOK_SECRET}' } }
  const env = { HOOK_SECRET: 'between us' }
  if (engine === 'sqlite') return new AgentInstallation(settings, { env })
  const schema = `webhooks_${randomBytes(6).toString('hex')}`
  return new AgentInstallation(settings, { env, store: withParameters(inject('postgres'), { schema }) })
}

/** Due at once. */
async function call(place: AgentInstallation, url: string): Promise<ScheduleId> {
  const id = newScheduleId(random)
  await (
    await place.store()
  ).apply(addSchedule, {
    id,
    name: id,
    kind: 'job',
    rule: { kind: 'in', delayMs: 1 },
    target: { kind: 'webhook', url },
    options: DEFAULT_OPTIONS,
    madeBy: 'ada',
  })
  return id
}

const settled = (place: AgentInstallation, scheduleId: ScheduleId): Promise<Occurrence> =>
  until(`${scheduleId} is settled`, async () => {
    const [line] = await (await place.store()).read(listOccurrences, { scheduleId, limit: 1 })
    return line === undefined || line.settledAt === null ? undefined : line
  })

describe.each(usualEngines)('on $name', ({ name: engine }) => {
  test('a daemon calls what is up, tries again what is not, and is killed while it waits: a person settles that [schedule/every-firing-accounted]', async () => {
    const [place, receiver] = [install(engine), await Receiver.open()]
    const daemon = await place.daemon()
    const [up, busy, gone, down] = [
      await call(place, receiver.url('/200')),
      await call(place, receiver.url('/500/204')),
      await call(place, receiver.url('/404')),
      await call(place, nobody()),
    ]
    expect(await settled(place, up)).toMatchObject({ state: 'succeeded', attempts: 1 })
    expect(await settled(place, busy)).toMatchObject({ state: 'succeeded', attempts: 2 })
    expect(await settled(place, gone)).toMatchObject({ state: 'failed', attempts: 1 })
    expect(await settled(place, down)).toMatchObject({ state: 'dropped', attempts: 4 })
    expect(receiver.at('/200')[0]?.headers['x-holdfast-signature']).toMatch(/^v1=[0-9a-f]{64}$/)

    const held = await call(place, receiver.url('/hold'))
    await until('it is under way', () => Promise.resolve(receiver.at('/hold')[0]))
    daemon.kill('SIGKILL')
    await daemon.ended
    await place.daemon()
    const doubt = await until('the doubt is listed', async () => {
      const [first] = await place.json<{ id: string; tool: string }[]>(['doubts', 'list'])
      return first
    })
    expect(doubt.tool).toBe('webhook')
    await place.json(['doubts', 'resolve', doubt.id, '--happened'])
    expect(await settled(place, held)).toMatchObject({ state: 'succeeded', attempts: 1 })
    expect(receiver.at('/hold')).toHaveLength(1)
    await assertInvariants(await place.store())
  })
})
