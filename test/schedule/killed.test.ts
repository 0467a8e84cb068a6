import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { listOccurrences } from '../../src/schedule/occurrence.ts'
import type { Occurrence } from '../../src/schedule/occurrence.ts'
import { schedulesByName } from '../../src/schedule/schedule.ts'
import type { Schedule } from '../../src/schedule/schedule.ts'
import { AgentInstallation } from '../support/agents.ts'
import { engines } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'

const settings = { agents: { clerk: { replies: [{ text: 'one' }, { text: 'two' }, { text: 'three' }] } } }

/** The schedule and its ledger, oldest line first, seen from beside. */
async function look(place: AgentInstallation, name: string): Promise<{ schedule: Schedule; lines: Occurrence[] }> {
  const store = await place.store()
  const [schedule] = await store.read(schedulesByName, name)
  if (schedule === undefined) throw new Error(`there is no ${name}`)
  const lines = await store.read(listOccurrences, { scheduleId: schedule.id, limit: 1_000 })
  return { schedule, lines: lines.toReversed() }
}

const isOpen = ({ state }: Occurrence) => state === 'due' || state === 'dispatched'

const ended = (place: AgentInstallation, name: string) =>
  until(`${name} is over`, async () => {
    const seen = await look(place, name)
    return seen.schedule.state !== 'active' && !seen.lines.some(isOpen) ? seen : undefined
  })

const add = (place: AgentInstallation, ...args: readonly string[]) => place.json<unknown>(['schedule', 'add', ...args])

/** Says which run it is, in a file that shares nothing with us, once it has started. */
const counting = (file: string, then = 'true') => ['sh', '-c', `echo "$HOLDFAST_RUN" >> '${file}'; ${then}`]
const counted = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [])

describe.each(engines)('the real daemon on $name', (engine) => {
  const install = async () =>
    new AgentInstallation(settings, engine.name === 'postgres' ? { store: (await engine.database()).url } : {})

  test('killed with -9 again and again while a job comes every second: no instant twice, none without a line [schedule/every-firing-accounted]', async () => {
    const place = await install()
    const file = join(place.folder, 'runs')
    const firings = 4
    await add(place, 'tick', '--every', '1s', '--max-firings', String(firings), '--', ...counting(file))
    for (let kills = 1; kills <= 2; kills += 1) {
      const daemon = await place.up()
      await until(`${kills} lines`, async () => (await look(place, 'tick')).lines.length >= kills || undefined)
      daemon.kill('SIGKILL')
      await daemon.ended
    }
    await place.up()
    const { schedule, lines } = await ended(place, 'tick')
    expect(schedule).toMatchObject({ state: 'ended', firings })
    // One that met the one before it counts too: it had its instant.
    const fired = lines.filter(({ lastAt }) => lastAt === null)
    expect(fired).toHaveLength(firings)
    const rule = schedule.rule as { anchor: number }
    let expected = rule.anchor
    for (const { dueAt, lastAt } of lines) {
      expect(dueAt).toBe(expected)
      expected = (lastAt ?? dueAt) + 1_000
    }
    // Each run once in the file; one whose command was cut off before its first word may be missing there, and says so.
    const runs = counted(file)
    expect(new Set(runs).size).toBe(runs.length)
    const succeeded = fired.filter(({ state }) => state === 'succeeded').map(({ runId }) => runId)
    expect(runs).toEqual(expect.arrayContaining(succeeded))
    expect(runs.length).toBeLessThanOrEqual(firings)
    await assertInvariants(await place.store())
  })

  // What a restart does is the same on both; in a normal run once is enough.
  test.skipIf(engine.name === 'postgres' && process.env['HOLDFAST_DEEP'] === undefined)(
    'down across the due time, of a turn and of a command: once, late, and not again after another restart [F4]',
    async () => {
      const place = await install()
      const file = join(place.folder, 'runs')
      await add(place, 'turn', '--in', '10ms', '--agent', 'clerk', 'look again')
      await add(place, 'command', '--in', '10ms', '--', ...counting(file))
      const daemon = await place.up()
      for (const name of ['turn', 'command'])
        expect((await ended(place, name)).lines).toMatchObject([{ state: 'succeeded', attempts: 1 }])
      daemon.kill('SIGKILL')
      await daemon.ended
      await place.up()
      // Something that comes after the restart has come: what was due before it has been looked at.
      await add(place, 'after', '--in', '10ms', '--', 'true')
      await ended(place, 'after')
      for (const name of ['turn', 'command']) expect((await look(place, name)).lines).toHaveLength(1)
      expect(counted(file)).toHaveLength(1)
    },
  )
})

test('a command that says "try again" is, three times at the promised distances; then it is dropped, and never again [F2] [F3]', async () => {
  const place = new AgentInstallation(settings)
  const [once, always] = [join(place.folder, 'once'), join(place.folder, 'always')]
  await place.up()
  await add(place, 'once', '--in', '10ms', '--', ...counting(once, `[ $(wc -l < '${once}') -gt 1 ] || exit 75`))
  await add(place, 'always', '--in', '10ms', '--', ...counting(always, 'exit 75'))
  expect((await ended(place, 'once')).lines).toMatchObject([{ state: 'succeeded', attempts: 2 }])
  const { schedule, lines } = await ended(place, 'always')
  expect(lines).toMatchObject([{ state: 'dropped', attempts: 4, reason: expect.stringContaining('after 4 attempts') }])
  expect(schedule.state).toBe('ended')
  expect([counted(once).length, counted(always).length]).toEqual([2, 4])
  // Never sooner than promised; how much later is the machine's affair.
  const [{ firedAt, settledAt } = { firedAt: 0, settledAt: 0 }] = lines
  expect((settledAt ?? 0) - (firedAt ?? 0)).toBeGreaterThanOrEqual(200 + 400 + 800)
})

test('killed after the dispatch, while its command is at work: that goes on, and its end is the outcome', async () => {
  const place = new AgentInstallation(settings)
  const daemon = await place.up()
  const gate = place.gate()
  await add(place, 'long', '--in', '10ms', '--', ...place.append('done', gate.path))
  await until('it is at work', async () => {
    const [line] = (await look(place, 'long')).lines
    return line?.runId != null && (await place.show(line.runId)).state === 'running' ? true : undefined
  })
  daemon.kill('SIGKILL')
  await daemon.ended
  expect((await look(place, 'long')).lines).toMatchObject([{ state: 'dispatched' }])
  await place.up()
  gate.open()
  expect((await ended(place, 'long')).lines).toMatchObject([
    { state: expect.stringMatching(/succeeded|failed/), attempts: 1 },
  ])
  expect(place.effects().length).toBeLessThanOrEqual(1)
})
