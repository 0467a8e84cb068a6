import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { describe, expect, inject, test } from 'vitest'

import { engines, temporaryFolder, usualEngines, withParameters } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { Installation, processesWith, supervisorsOf, until } from '../support/holdfast.ts'
import type { Running } from '../support/holdfast.ts'

/** An installation of its own, on a store of its own. */
type Engine = TestEngine['name']

const storeOn = (engine: Engine, home?: string): { store?: string } => {
  if (engine === 'postgres')
    return { store: withParameters(inject('postgres'), { schema: `story_${randomBytes(6).toString('hex')}` }) }
  return home === undefined ? {} : { store: `sqlite:${home}/holdfast.db` }
}

const started = (place: Installation, id: string) =>
  until('the command is running', () => Promise.resolve(processesWith(`HOLDFAST_RUN=${id}`).length > 0 || undefined))
const gone = (id: string) =>
  until('no process is left', () => Promise.resolve(processesWith(`HOLDFAST_RUN=${id}`).length === 0 || undefined))
const finishes = async (place: Installation, id: string) =>
  (await place.json<{ type: string }[]>(['runs', 'events', id])).filter(({ type }) => type === 'run.finished').length

/**
 * Stops the process between two commits. One that is stopped inside of a commit holds an SQLite database for as long as it is
 * stopped, and nobody can take anything over; everyone else then says `store/busy`.
 */
async function pause(daemon: Running, store: string | undefined): Promise<void> {
  await until('the process is stopped between two commits', () => {
    daemon.kill('SIGSTOP')
    if (!store?.startsWith('sqlite:') || isFree(store.slice('sqlite:'.length))) return Promise.resolve(true)
    daemon.kill('SIGCONT')
    return Promise.resolve(undefined)
  })
}

function isFree(file: string): boolean {
  using database = new DatabaseSync(file)
  try {
    database.exec('begin immediate; rollback')
    return true
  } catch {
    return false
  }
}

describe.each(engines)('on $name somebody is killed with -9 while a command runs', ({ name: engine }) => {
  test('the daemon: its command goes on, and the next daemon records the end once [runs/paid-work-kept] [runs/one-terminal]', async () => {
    const place = new Installation(storeOn(engine))
    const daemon = await place.up()
    const gate = place.gate()
    const id = await place.detach(...place.append('a', gate.path))
    await started(place, id)
    daemon.kill('SIGKILL')
    await daemon.ended
    await place.up()
    gate.open()
    const run = await place.reaches(id, 'succeeded')
    expect(run).toMatchObject({ attempt: 2, result: { exitCode: 0, stdout: { head: 'appended a\n' } } })
    expect(place.effects()).toEqual(['a'])
    expect(await finishes(place, id)).toBe(1)
  })

  test('daemon and supervisor together: the next daemon ends the run as lost and accounts for every process', async () => {
    const place = new Installation(storeOn(engine))
    const daemon = await place.up()
    const id = await place.detach('sh', '-c', `${place.append('e').join(' ')} ; sleep 300`)
    await until('the effect happened', () => Promise.resolve(place.effects().length > 0 || undefined))
    daemon.kill('SIGKILL')
    for (const { pid } of supervisorsOf(place.home)) process.kill(pid, 'SIGKILL')
    await daemon.ended
    await place.up()
    expect(await place.reaches(id, 'failed')).toMatchObject({ code: 'lost' })
    expect(processesWith(`HOLDFAST_RUN=${id}`)).toEqual([])
    expect(place.effects()).toEqual(['e'])
    expect(await finishes(place, id)).toBe(1)
  })

  test('the daemon after cancel was requested: the next one ends the run cancelled, its processes dead [runs/cancel-is-final]', async () => {
    const place = new Installation(storeOn(engine))
    const daemon = await place.up()
    const id = await place.detach('sleep', '300')
    await started(place, id)
    daemon.kill('SIGKILL')
    await daemon.ended
    expect((await place.run(['runs', 'cancel', '--no-wait', id])).code).toBe(0)
    await place.up()
    await place.reaches(id, 'cancelled')
    expect(processesWith(`HOLDFAST_RUN=${id}`)).toEqual([])
  })
})

describe.each(usualEngines)('on $name somebody is killed with -9, and processes are left', ({ name: engine }) => {
  test('the daemon, and the command ends before the next one starts: the finished result is not lost [runs/paid-work-kept]', async () => {
    const place = new Installation(storeOn(engine))
    const daemon = await place.up()
    const gate = place.gate()
    const id = await place.detach(...place.append('b', gate.path))
    await started(place, id)
    daemon.kill('SIGKILL')
    await daemon.ended
    gate.open()
    await gone(id)
    expect(place.effects()).toEqual(['b'])
    expect((await place.show(id)).state).toBe('running')
    await place.up()
    expect(await place.reaches(id, 'succeeded')).toMatchObject({ result: { exitCode: 0 } })
    expect(place.effects()).toEqual(['b'])
  })

  test('the foreground holdfast run: a daemon takes its command up', async () => {
    const place = new Installation(storeOn(engine))
    const gate = place.gate()
    const front = place.start(['run', '--', ...place.append('c', gate.path)])
    const { id } = await until(
      'the run is stored',
      async () => (await place.json<{ id: string }[]>(['runs', 'list']))[0],
    )
    await started(place, id)
    front.kill('SIGKILL')
    await front.ended
    await place.up()
    gate.open()
    await place.reaches(id, 'succeeded')
    expect(place.effects()).toEqual(['c'])
    expect(await finishes(place, id)).toBe(1)
  })

  test('the supervisor: the run ends as lost, nothing is run again, no process is left [control/stop-means-stopped]', async () => {
    const place = new Installation(storeOn(engine))
    await place.up()
    const id = await place.detach('sh', '-c', `(setsid sleep 300 &) ; ${place.append('d').join(' ')} ; sleep 300`)
    await until('the effect happened', () => Promise.resolve(place.effects().length > 0 || undefined))
    for (const { pid } of supervisorsOf(place.home)) process.kill(pid, 'SIGKILL')
    expect(await place.reaches(id, 'failed')).toMatchObject({ code: 'lost', attempt: 1 })
    expect(processesWith(`HOLDFAST_RUN=${id}`)).toEqual([])
    expect(place.effects()).toEqual(['d'])
  })

  test('the daemon, and nobody starts another: runs cancel stops the orphan by itself', async () => {
    const place = new Installation(storeOn(engine))
    const daemon = await place.up()
    const id = await place.detach('sleep', '300')
    await started(place, id)
    daemon.kill('SIGKILL')
    await daemon.ended
    expect((await place.run(['runs', 'cancel', id])).code).toBe(0)
    expect((await place.show(id)).state).toBe('cancelled')
    expect(processesWith(`HOLDFAST_RUN=${id}`)).toEqual([])
  })

  test('the daemon, and somebody removes what its command left: it is lost, not run again', async () => {
    const place = new Installation(storeOn(engine))
    const daemon = await place.up()
    const id = await place.detach('sh', '-c', `${place.append('f').join(' ')} ; sleep 300`)
    await until('the effect happened', () => Promise.resolve(place.effects().length > 0 || undefined))
    daemon.kill('SIGKILL')
    await daemon.ended
    rmSync(join(place.home, 'work'), { recursive: true })
    await place.up()
    expect(await place.reaches(id, 'failed')).toMatchObject({ code: 'lost' })
    expect(place.effects()).toEqual(['f'])
    expect(processesWith(`HOLDFAST_RUN=${id}`)).toEqual([])
  })

  test('nobody, but somebody removes the folder of the command: it is lost, not run again', async () => {
    const place = new Installation(storeOn(engine))
    await place.up()
    const gate = place.gate()
    const wait = `until [ -e ${gate.path} ]; do sleep 0.02; done`
    const id = await place.detach('sh', '-c', `${place.append('g').join(' ')} ; ${wait}`)
    await until('the effect happened', () => Promise.resolve(place.effects().length > 0 || undefined))
    rmSync(join(place.home, 'work'), { recursive: true })
    gate.open()
    expect(await place.reaches(id, 'failed', 'succeeded')).toMatchObject({
      state: 'failed',
      code: 'lost',
      attempt: 1,
    })
    expect(place.effects()).toEqual(['g'])
    expect(await finishes(place, id)).toBe(1)
  })

  test('the foreground that has a key: the next one with that key recovers it, and listens to Ctrl-C', async () => {
    const place = new Installation(storeOn(engine))
    const first = place.start(['run', '--key', 'k', '--', 'sleep', '300'])
    const { id } = await until(
      'it runs',
      async () => (await place.json<{ id: string }[]>(['runs', 'list', '--state', 'running']))[0],
    )
    await started(place, id)
    first.kill('SIGKILL')
    await first.ended
    const second = place.start(['run', '--key', 'k', '--', 'sleep', '300'])
    await until('it is taken over', async () => ((await place.show(id)).attempt > 1 ? true : undefined))
    second.kill('SIGINT')
    expect((await second.ended).code).not.toBe(0)
    expect((await place.show(id)).state).toBe('cancelled')
    expect(processesWith(`HOLDFAST_RUN=${id}`)).toEqual([])
  })

  test('a foreground run that was still waiting for its slot: it ends, and nobody executes it', async () => {
    const place = new Installation(storeOn(engine))
    const first = place.start(['run', '--thread', 'one', '--', 'sleep', '300'])
    const running = await until(
      'it runs',
      async () => (await place.json<{ id: string; state: string }[]>(['runs', 'list', '--state', 'running']))[0],
    )
    const second = place.start(['run', '--thread', 'one', '--', ...place.append('never')])
    const waiting = await until(
      'it waits',
      async () => (await place.json<{ id: string }[]>(['runs', 'list', '--state', 'queued']))[0],
    )
    second.kill('SIGKILL')
    await second.ended
    await place.run(['runs', 'cancel', running.id])
    await first.ended
    await place.up()
    expect(await place.reaches(waiting.id, 'failed')).toMatchObject({ code: 'lost' })
    expect(place.effects()).toEqual([])
  })
})

describe.each(engines)('on $name a daemon is asked to stop', ({ name: engine }) => {
  test('SIGTERM drains: what ends in time ends here, the rest is handed over and goes on', async () => {
    const place = new Installation(storeOn(engine))
    const daemon = await place.up()
    const [soon, late] = [place.gate(), place.gate()]
    const short = await place.detach(...place.append('short', soon.path))
    const long = await place.detach(...place.append('long', late.path))
    await started(place, short)
    await started(place, long)
    daemon.kill('SIGTERM')
    soon.open()
    await place.reaches(short, 'succeeded')
    daemon.kill('SIGTERM')
    expect((await daemon.ended).code).toBe(0)
    expect(await place.show(long)).toMatchObject({ state: 'running' })
    await place.up()
    late.open()
    await place.reaches(long, 'succeeded')
    expect(place.effects().toSorted()).toEqual(['long', 'short'])
  })
})

describe.each(engines)('on $name a worker is paused beyond its lease', ({ name: engine }) => {
  test('it is taken over, and when it comes back it changes nothing and nothing happens twice [runs/fenced]', async () => {
    const shared = storeOn(engine, temporaryFolder())
    // Long enough for a busy machine to renew it in time.
    const first = new Installation({ lease: '3s', ...shared })
    const second = new Installation({ lease: '3s', ...shared })
    const paused = await first.up()
    const gate = first.gate()
    const id = await first.detach(...first.append('once', gate.path))
    await started(first, id)
    await pause(paused, shared.store)
    const taker = await second.up()
    const isTaken = async () =>
      (await second.json<{ type: string }[]>(['runs', 'events', id])).some(({ type }) => type === 'run.taken_over')
        ? true
        : undefined
    await until('it is taken over', isTaken)
    paused.kill('SIGCONT')
    gate.open()
    const run = await second.reaches(id, 'succeeded', 'failed', 'cancelled')
    expect(run).toMatchObject({ state: 'succeeded', attempt: 2 })
    expect(run.lateResults).toBeUndefined()
    expect(first.effects()).toEqual(['once'])
    expect(await finishes(second, id)).toBe(1)
    for (const daemon of [paused, taker]) {
      daemon.kill('SIGTERM')
      expect((await daemon.ended).code).toBe(0)
    }
  })
})
