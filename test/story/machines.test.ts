import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'

import { describe, expect, inject, onTestFinished, test } from 'vitest'

import type { RunView } from '../../src/runs/view.ts'
import { withParameters } from '../support/engines.ts'
import { Installation, PROGRAM, processesWith, startProcess, until } from '../support/holdfast.ts'
import type { Running } from '../support/holdfast.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

/** Another machine, as far as Holdfast can tell: a host name and a process table of its own. */
const canMakeHosts = spawnSync('unshare', ['--uts', '--pid', '--fork', '--mount-proc', 'true']).status === 0
if (!canMakeHosts)
  console.warn('no other hosts can be made here (unshare): the stories of several machines are not told')

const newStore = () => withParameters(inject('postgres'), { schema: `story_${randomBytes(6).toString('hex')}` })

/** A daemon on a machine of its own. Killing it is pulling the plug: every process there is gone at once. */
async function daemonElsewhere(place: Installation, store: string): Promise<Running> {
  const script = `hostname elsewhere; exec "$0" --config "${place.configuration}" up`
  const args = ['--uts', '--pid', '--fork', '--kill-child', '--mount-proc', 'sh', '-c', script, PROGRAM]
  const machine = startProcess('unshare', args, { HOLDFAST_HOME: place.home, HOLDFAST_STORE: store })
  await machine.said('holdfast: up:')
  return machine
}

/** Of a daemon that is not told how many. */
const PLACES = Math.max(4, availableParallelism() * 2)

const isRunning = (place: Installation, id: string) => place.reaches(id, 'running')

describe.runIf(canMakeHosts)('several machines on one PostgreSQL', () => {
  test('a machine that vanishes: its run is left alone until a person says so, and is never run again', async () => {
    const store = newStore()
    const [here, there] = [new Installation({ store, lease: '3s' }), new Installation({ store, lease: '3s' })]
    const machine = await daemonElsewhere(there, store)
    const id = await here.detach('sh', '-c', `${here.append('once').join(' ')}; sleep 300`)
    await until('it has its effect', () => Promise.resolve(here.effects().length > 0 || undefined))
    machine.kill('SIGKILL')
    await until('everything there is gone', () =>
      Promise.resolve(processesWith(`HOLDFAST_RUN=${id}`).length === 0 || undefined),
    )
    await here.up()
    const warned = await until('the doctor says so', async () => {
      const { findings } = await here.json<{ findings: { check: string; detail: string }[] }>(['doctor'])
      return findings.find(({ check }) => check === 'run')
    })
    expect(warned.detail).toContain('elsewhere')
    expect((await here.show(id)).state).toBe('running')
    expect((await here.run(['runs', 'disown', id])).code).toBe(0)
    expect(await here.show(id)).toMatchObject({ state: 'failed', code: 'lost' })
    expect(here.effects()).toEqual(['once'])
  })

  test('a run that a living worker holds cannot be disowned', async () => {
    const store = newStore()
    const [here, there] = [new Installation({ store }), new Installation({ store })]
    const machine = await daemonElsewhere(there, store)
    const id = await here.detach('sleep', '300')
    await isRunning(here, id)
    const refused = await here.run(['runs', 'disown', id])
    expect(refused).toMatchObject({ code: 4, stdout: '' })
    await here.run(['runs', 'cancel', id])
    expect((await here.show(id)).state).toBe('cancelled')
    machine.kill('SIGKILL')
  })

  test('work is shared: whichever machine has a place takes it, and each is done once', async () => {
    const store = newStore()
    const [here, there] = [new Installation({ store }), new Installation({ store })]
    await daemonElsewhere(there, store)
    await here.up()
    const entries = Array.from({ length: 2 * PLACES + 4 }, (_, index) => `job-${index}`)
    const gate = here.gate()
    const ids = await Promise.all(entries.map((entry) => here.detach(...here.append(entry, gate.path))))
    // More than one machine has places for.
    await until('both are full', async () => {
      const running = await here.json<RunView[]>(['runs', 'list', '--state', 'running'])
      return running.length === 2 * PLACES || undefined
    })
    gate.open()
    for (const id of ids) await here.reaches(id, 'succeeded')
    expect(here.effects().toSorted()).toEqual(entries.toSorted())
    const runs = await Promise.all(
      ids.map((id) => here.json<RunView & { attempts: { workerId: string }[] }>(['runs', 'show', id])),
    )
    expect(new Set(runs.map(({ attempts }) => attempts[0]?.workerId)).size).toBe(2)
  })
})

describe('a worker that is cut off from the database', () => {
  test('stops its commands before its lease ends, so that nobody has to wonder [runs/fenced] [control/stop-means-stopped]', async () => {
    const store = newStore()
    const proxy = await TcpProxy.before(store)
    onTestFinished(() => proxy.close())
    const here = new Installation({ store, lease: '10s' })
    const cutOff = new Installation({ store: proxy.through(store), lease: '10s' })
    const daemon = await cutOff.up()
    const id = await here.detach('sh', '-c', 'trap "" TERM; while :; do sleep 1; done')
    await until('the command is running', () =>
      Promise.resolve(processesWith(`HOLDFAST_RUN=${id}`).length > 0 || undefined),
    )
    const before = performance.now()
    for (const link of proxy.links()) link.blackHole()
    proxy.refusing = true
    await until('its processes are gone', () =>
      Promise.resolve(processesWith(`HOLDFAST_RUN=${id}`).length === 0 || undefined),
    )
    expect(performance.now() - before).toBeLessThan(10_000)
    expect((await here.show(id)).state).toBe('running')
    daemon.kill('SIGKILL')
    await daemon.ended
    await here.up()
    expect(await here.reaches(id, 'failed')).toMatchObject({
      code: 'lost',
      error: 'stopped because its worker lost the claim',
    })
  })
})
