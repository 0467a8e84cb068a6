import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import type { ThreadId } from '../../src/base/ids.ts'
import { corruptRecords } from '../../src/hooks/spool.ts'
import { listRuns } from '../../src/runs/run.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { Installation, until } from '../support/holdfast.ts'
import type { Ended, Running } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { callHook, says, stopSays } from './support.ts'

const DEEP = process.env['HOLDFAST_DEEP'] === '1'
const EVENTS = DEEP ? 500 : 36
const KILLS = DEEP ? 5 : 2
/** As many processes as two cores can start without each of them waiting for seconds. */
const TOGETHER = 24
const PARENT = 'claude-parent'

const spooled = (home: string) => (existsSync(join(home, 'spool')) ? readdirSync(join(home, 'spool')) : [])

/** All of them, so many at a time; `onEach` hears how many have ended. */
async function allTogether<T>(count: number, work: (index: number) => Promise<T>, onEach: (done: number) => void) {
  const results: T[] = []
  let [next, done] = [0, 0]
  const take = async () => {
    while (next < count) {
      const index = next
      next += 1
      results[index] = await work(index)
      done += 1
      onEach(done)
    }
  }
  await Promise.all(Array.from({ length: TOGETHER }, take))
  return results
}

/** A daemon that is killed, and started again, when it is told to. */
async function mortalDaemon(installation: Installation) {
  let daemon: Running = await installation.up()
  let turn = Promise.resolve()
  const killed = async () => {
    daemon.kill('SIGKILL')
    await daemon.ended
    daemon = await installation.up()
  }
  return { kill: () => void (turn = turn.then(killed)), settled: () => turn }
}

test(`${EVENTS} ends of turns at once while the daemon is killed ${KILLS} times: each is recorded once, and no client is blocked [M3] [inbox/never-lost] [inbox/effect-once]`, async () => {
  const installation = new Installation()
  const { home } = installation
  const daemon = await mortalDaemon(installation)
  await callHook({ home, says: says('SessionStart', { source: 'startup' }, { session: 'parent' }) })
  const end = (index: number): Promise<Ended> =>
    callHook({
      home,
      says: stopSays(`words of ${index}`, {}, { session: `child-${index}` }),
      env: { HOLDFAST_THREAD: PARENT },
    })
  const every = Math.ceil(EVENTS / (KILLS + 1))
  const ends = await allTogether(EVENTS, end, (done) => done % every === 0 && done < EVENTS && daemon.kill())
  await daemon.settled()
  expect(ends.filter(({ code, stdout }) => (code !== 0 && code !== 1) || stdout !== '')).toEqual([])
  expect(ends.filter(({ stderr }) => stderr.includes('LOST'))).toEqual([])
  await until('the spool is empty', async () => (spooled(home).length === 0 ? true : undefined))
  const store = await openSqliteStore({ path: join(home, 'holdfast.db') })
  onTestFinished(() => store.close())
  const told = await store.read(messagesOf, PARENT as ThreadId)
  const words = told.map(({ body }) => String(body.summary)).toSorted()
  expect(words).toEqual(Array.from({ length: EVENTS }, (_, index) => `words of ${index}`).toSorted())
  expect(await store.read(listRuns, { limit: EVENTS + 10 })).toHaveLength(EVENTS)
  expect(await corruptRecords(home)).toEqual([])
  await assertInvariants(store)
})
