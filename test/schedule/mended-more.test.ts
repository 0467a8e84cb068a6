import { describe, expect, test } from 'vitest'

import { newWorkerId, systemRandomness as random } from '../../src/base/ids.ts'
import { registerWorker, stopWorker } from '../../src/runs/worker.ts'
import { pauseSchedule } from '../../src/schedule/edit.ts'
import { reopenThread, stopThread } from '../../src/threads/remove.ts'
import { engines } from '../support/engines.ts'
import { someIdentity } from '../support/world.ts'
import { AGENT, START, ScheduleWorld } from './support.ts'

const MINUTE = 60_000

describe.each(engines)('what was mended last, on $name', (engine) => {
  test('an agent of a program that has stopped is known after the daemon of the same home was started again', async () => {
    const world = await ScheduleWorld.open(engine)
    const [program, daemon] = [newWorkerId(random), newWorkerId(random)]
    const place = { home: '/home/one', identity: someIdentity() }
    await world.store.apply(registerWorker, { ...place, id: program, kind: 'command', agents: ['coder'] })
    await world.store.apply(stopWorker, program)
    await world.store.apply(registerWorker, { ...place, id: daemon, kind: 'daemon', agents: [AGENT] })
    const rule = { kind: 'once', at: START + MINUTE } as const
    const { id } = await world.add({ rule, target: { kind: 'agent', agent: 'coder', text: 'go on' } })
    await world.pass(MINUTE)
    expect(await world.states(id)).toEqual(['dispatched'])
  })

  test('what is held for a stopped thread does not fire when that is opened, while its schedule is paused', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add()
    await world.store.apply(stopThread, world.thread)
    await world.pass(MINUTE)
    await world.store.apply(pauseSchedule, id, 'ada')
    await world.store.apply(reopenThread, world.thread)
    await world.look()
    expect(await world.work()).toBeUndefined()
  })
})
