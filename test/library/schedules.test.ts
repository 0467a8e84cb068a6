import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { newScheduleId, newWorkerId, systemRandomness as random } from '../../src/base/ids.ts'
import { createRuntime, defineFunction, defineTool } from '../../src/index.ts'
import type { Occurrence, Runtime } from '../../src/index.ts'
import { registerWorker, stopWorker } from '../../src/runs/worker.ts'
import { addSchedule } from '../../src/schedule/edit.ts'
import { DEFAULT_OPTIONS } from '../../src/schedule/schedule.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { someIdentity } from '../support/world.ts'
import { clerk, open } from './support.ts'

const code = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error: unknown) => (error as { code?: string }).code,
  )

const settled = (runtime: Runtime, name: string): Promise<Occurrence> =>
  until(`${name} is settled`, async () => {
    const [newest] = await runtime.schedules.occurrences(name)
    return newest?.settledAt === undefined ? undefined : newest
  })

describe.each(engines)('schedules of a program, on $name', (engine) => {
  test('its own worker fires them, and each firing is accounted for [schedule/every-firing-accounted]', async () => {
    const { url: store } = await engine.database()
    const { runtime } = await open(clerk([{ text: 'one' }, { text: 'two' }, { text: 'three' }]), { store })
    await runtime.start()
    await runtime.schedules.add({ name: 'ask', every: '1s', maxFirings: 1, agent: 'clerk', text: 'What is new?' })
    expect(await settled(runtime, 'ask')).toMatchObject({ state: 'succeeded', attempts: 1 })
    expect((await runtime.schedules.get('ask')).state).toBe('ended')

    const { threadId } = await runtime.send({ agent: 'clerk', text: 'hello', key: 'k' })
    const { id } = await runtime.followUp({ threadId, in: '1ms', text: 'Look again.', reason: 'the build' })
    expect(await settled(runtime, id)).toMatchObject({ state: 'succeeded', threadId })
  })

  test('a function that is due takes a free place at once, and waits for one else', async () => {
    const { url: store } = await engine.database()
    const gate = Promise.withResolvers<void>()
    const slow = defineFunction('slow', async () => gate.promise)
    const quick = defineFunction('quick', ({ input }) => Promise.resolve(input))
    const runtime = await createRuntime({ home: temporaryFolder(), store, agents: [slow, quick] })
    try {
      await runtime.start({ calls: 1 })
      await runtime.schedules.add({ name: 'first', in: '1ms', function: 'slow' })
      const begun = await until('it is begun', async () => (await runtime.schedules.occurrences('first'))[0])
      expect(begun).toMatchObject({ state: 'dispatched', attempts: 1 })
      await runtime.schedules.add({ name: 'second', in: '1ms', function: 'quick', input: 2 })
      await until('it is fired', async () => (await runtime.schedules.occurrences('second'))[0])
      gate.resolve()
      for (const name of ['first', 'second']) {
        expect(await settled(runtime, name)).toMatchObject({ state: 'succeeded', attempts: 1 })
        expect((await runtime.schedules.get(name)).state).toBe('ended')
      }
    } finally {
      await runtime.close()
    }
  })

  test('what a tool of its own asks for belongs to the run that called it, and no person', async () => {
    const { url: store } = await engine.database()
    const later = defineTool({
      name: 'later',
      description: 'Looks again later',
      effect: 'write',
      input: z.object({}),
      run: async (_input, signal, { threadId, runId }) => {
        signal.throwIfAborted()
        const job = await runtime.schedules.add({ name: 'job', in: '1h', webhook: 'https://example.invalid/' })
        const { ownerRunId } = await runtime.followUp({ threadId, in: '1h', text: 'Look again.' })
        return [job.ownerThreadId === threadId, job.ownerRunId === runId, ownerRunId === runId]
      },
    })
    const replies = [{ toolCalls: [{ tool: 'later', input: {} }] }, { text: 'Done.' }]
    const { runtime } = await open(clerk(replies, [later]), { store })
    await runtime.start()
    const answer = runtime.ask({ agent: 'clerk', text: 'Go.' })
    const results: unknown[] = []
    for await (const event of answer) if (event.type === 'action' && event.state === 'done') results.push(event.result)
    expect(results).toEqual([[true, true, true]])
  })

  test('the agents of a daemon that has stopped are not unknown to a program with other ones', async () => {
    const database = await engine.database()
    const store = await database.open()
    const id = newWorkerId(random)
    const daemon = { id, kind: 'daemon', home: '/daemon', identity: someIdentity(), agents: ['scribe'] } as const
    await store.apply(registerWorker, daemon)
    await store.apply(stopWorker, id)
    const added = ['scribe', 'nobody'].map((agent) => ({
      id: newScheduleId(random),
      name: agent,
      kind: 'job' as const,
      rule: { kind: 'in', delayMs: 1 } as const,
      target: { kind: 'agent', agent, text: 'Write.' } as const,
      options: DEFAULT_OPTIONS,
      madeBy: 'ada',
    }))
    for (const schedule of added) await store.apply(addSchedule, schedule)
    const { runtime } = await open(clerk([]), { store: database.url })
    await runtime.start()
    expect(await settled(runtime, 'nobody')).toMatchObject({
      state: 'dropped',
      reason: 'no daemon has the agent nobody',
    })
    await until('its daemon is awaited', async () => {
      const [line] = await runtime.schedules.occurrences('scribe')
      return line?.state === 'dispatched' || undefined
    })
  })

  test('it pauses, resumes, fires by hand and removes; what is wrong stores nothing', async () => {
    const { url: store } = await engine.database()
    const { runtime } = await open(clerk([{ text: 'one' }]), { store })
    const { schedules } = runtime
    const job = { name: 'job', cron: '0 0 1 1 *', zone: 'UTC', agent: 'clerk', text: 'Go.' } as const
    expect(await code(schedules.add({ ...job, name: 'a b' }))).toBe('usage/schedule')
    expect(await code(schedules.add({ ...job, agent: 'nobody' }))).toBe('not-found/agent')
    expect(await code(runtime.followUp({ threadId: 'nowhere', in: '1m', text: 'x' }))).toBe('not-found/thread')
    expect(await schedules.list({ all: true })).toEqual([])

    const { nextAt } = await schedules.add(job)
    expect(await code(schedules.add(job))).toBe('schedules/name-taken')
    expect((await schedules.pause('job', 'holidays')).reason).toBe('holidays')
    expect((await schedules.resume('job')).state).toBe('active')
    await runtime.start()
    expect(await schedules.runNow('job', { key: 'a' })).toMatchObject({ state: 'dispatched', origin: 'run_now' })
    expect((await settled(runtime, 'job')).state).toBe('succeeded')
    expect((await schedules.get('job')).nextAt).toBe(nextAt)
    expect((await schedules.remove('job')).state).toBe('removed')
    expect(await code(schedules.runNow('job'))).toBe('schedules/over')
    expect(await code(schedules.get('nothing'))).toBe('not-found/schedule')
  })
})
