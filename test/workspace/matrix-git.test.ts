import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, onTestFinished, test, vi } from 'vitest'

import { systemClock as clock } from '../../src/base/clock.ts'
import { GIVEN_UP } from '../../src/git/refs.ts'
import { isTerminal } from '../../src/runs/run.ts'
import { findWorkspace } from '../../src/workspace/workspace.ts'
import { tendRegularly } from '../../src/workers/tend.ts'
import { builtFixture } from '../support/built-fixture.ts'
import { processesWith, startProcess, until } from '../support/holdfast.ts'
import { IN_THE_MIDDLE, KILLS, orphanUntil, trapGit } from './git-trap.ts'
import { LONG_MS, assertDiscarded, assertLanded, isDeep, oursIn, ranIn, settledBy, takeUp } from './matrix.ts'
import { WorkStage } from './work-stage.ts'

const DOOMED = builtFixture(new URL('../crash/doomed-workspace.ts', import.meta.url))

const EDIT = 'echo more >> a.txt; echo new > new.txt; rm dir/b.txt'
const more = { check: { command: 'test -f new.txt' } }

/** Like a machine without memory that kills one git command, the nth, of a worker that goes on. */
async function killNth(nth: number, how: keyof typeof KILLS, script: string) {
  const stage = await WorkStage.begin()
  const before = stage.seen()
  const id = await stage.submit(`echo . >> ${ranIn(stage)}; ${script}`, more)
  const trap = trapGit(stage, `[ $n -ge ${nth} ]`, KILLS[how])
  const worker = await stage.worker(undefined, undefined, trap.env)
  await worker.start()
  const stopTending = tendRegularly({ clock, leaseMs: 3_000 }, worker)
  onTestFinished(stopTending)
  const run = await until('the run has ended', async () => {
    const found = await stage.run(id)
    return isTerminal(found.state) ? found : undefined
  })
  // Before anything was written down there is nothing to settle.
  if ((await stage.store.read(findWorkspace, id)) === undefined) {
    expect([run.state, run.code, stage.seen(), oursIn(stage)]).toEqual(['failed', 'spawn', before, []])
    return { trap, end: 'not opened' }
  }
  const settled = await settledBy(worker, stage, id)
  const dead = { stage, id, before }
  await (settled.workspace.state === 'landed' ? assertLanded(dead, settled) : assertDiscarded(dead, settled))
  stopTending()
  await worker.stop()
  return { trap, end: settled.workspace.state }
}

async function inTurn<T>(all: readonly T[], together: number, work: (one: T) => Promise<void>): Promise<void> {
  const rest = [...all]
  const one = async () => {
    for (let next = rest.shift(); next !== undefined; next = rest.shift()) await work(next)
  }
  await Promise.all(Array.from({ length: together }, one))
}

interface Kill {
  readonly nth: number
  readonly how: keyof typeof KILLS
}

/** So many git commands has a run, and a few more; the first ones are those that open its tree. */
const [OPENING, MOST] = [22, 70]
const kills: readonly Kill[] = isDeep
  ? Array.from({ length: 2 * MOST }, (_, at) => ({ nth: (at >> 1) + 1, how: at % 2 === 0 ? 'before' : 'after' }))
  : [3, 14, 25, 36, 47].map((nth, at) => ({ nth, how: at % 2 === 0 ? 'after' : 'before' }))

vi.setConfig({ testTimeout: LONG_MS })

describe('a git command of ours that is killed', () => {
  test.each([
    { title: 'of a run that succeeds', script: EDIT, fewer: 0 },
    { title: 'of a run that fails', script: `${EDIT}; exit 3`, fewer: isDeep ? 0 : OPENING },
  ])('the nth $title, for every n, before or after it did its work: all or nothing', async ({ script, fewer }) => {
    const ends: Record<string, number> = {}
    const some = fewer === 0 ? kills : kills.slice(1, 3)
    await inTurn(some, 5, async ({ nth, how }) => {
      const { trap, end } = await killNth(nth, how, script).catch((error: unknown) => {
        throw new Error(`git command ${nth}, killed ${how}: ${String(error)}`, { cause: error })
      })
      const [said, command] = trap.isSprung ? [end, trap.killed] : ['nothing was killed', '']
      ends[`${said} ${command}`] = (ends[`${said} ${command}`] ?? 0) + 1
    })
    if (isDeep) console.log(ends)
  })
})

describe('a git command of ours that is killed with the lock of our own ref in its hands', () => {
  /** As git leaves it: the new value is in it, or nothing yet. */
  const dies = (ref: string) => `echo "$3" > "$GIT_DIR/${ref}.lock"; kill -9 $$`

  const moments = [
    { condition: (ran: string) => `expr "$2" : refs/holdfast/ > /dev/null && test -e ${ran}`, act: dies('$2') },
    { condition: () => 'expr "$2$3" : -drefs/holdfast/ > /dev/null', act: dies('$3') },
    {
      condition: () => 'expr "$3" : "holdfast: run" > /dev/null',
      act: `mkdir -p "$GIT_DIR/${GIVEN_UP}"; ${dies(`${GIVEN_UP}\${3##* }`)}`,
    },
  ]

  test('when it names the work, takes its name away, or looks whether it was given up: the lock is swept, as it is ours, and the work lands', async () => {
    await inTurn(moments, 3, async ({ condition, act }) => {
      const stage = await WorkStage.begin()
      const before = stage.seen()
      const id = await stage.submit(`echo . >> ${ranIn(stage)}; ${EDIT}`, more)
      const trap = trapGit(stage, `[ "$1" = update-ref ] && ${condition(ranIn(stage))}`, act)
      const worker = await stage.worker(undefined, undefined, trap.env)
      await worker.start()
      await assertLanded({ stage, id, before }, await settledBy(worker, stage, id))
      expect(trap.isSprung).toBe(true)
    })
  })
})

/** A daemon whose git is trapped, until it is dead. */
async function dieInTrap(condition: string, act: (project: string) => string, script: string) {
  const stage = await WorkStage.begin()
  const before = stage.seen()
  const id = await stage.submit(`echo . >> ${ranIn(stage)}; ${script}`, more)
  const trap = trapGit(stage, condition, act(stage.world.project))
  const ended = await startProcess(process.execPath, [DOOMED, stage.database.url, stage.home, '-'], trap.env).ended
  expect([ended.code, trap.isSprung, ended.stderr]).toEqual([null, true, ''])
  return { stage, id, before }
}

describe('SIGKILL in the middle of a git command', () => {
  const files = isDeep ? 5_000 : 1_000
  const many = `for n in $(seq ${files}); do echo $n > f$n.txt; done; echo new > new.txt`
  const kinds = Object.entries(IN_THE_MIDDLE).map(([who, act]) => ({ who, act }))

  test.each(kinds)(
    `for $who, with ${files} files half prepared: they land once and whole [X2] [workspace/all-or-nothing]`,
    async ({ act }) => {
      const dead = await dieInTrap(`[ "$1 $2" = "update-index --add" ]`, (project) => act(project, files / 2), many)
      expect(dead.stage.seen()).toEqual(dead.before)
      await assertLanded(dead, await takeUp(dead))
      expect(dead.stage.world.user(['ls-files', 'f*.txt']).split('\n')).toHaveLength(files)
    },
  )

  test('for the daemon, whose git moves the branch a moment after another one has: it lands once [X2]', async () => {
    const isMove = `[ "$1" = update-ref ] && echo "$*" | grep -q "holdfast: run"`
    const dead = await dieInTrap(isMove, (project) => orphanUntil(`${project}-gate`), EDIT)
    const { stage } = dead
    await assertLanded(dead, await takeUp(dead))
    // The person has gone on by then: the late one finds another value than it expects.
    const mine = stage.world.commit({ 'mine.txt': 'mine\n' })
    expect(processesWith(join(stage.world.folder, 'trap')).length).toBeGreaterThan(0)
    writeFileSync(`${stage.world.project}-gate`, '')
    await until('the late one has ended', () =>
      Promise.resolve(processesWith(join(stage.world.folder, 'trap')).length === 0 || undefined),
    )
    expect([stage.world.tip(), stage.world.status()]).toEqual([mine, ''])
  })
})
