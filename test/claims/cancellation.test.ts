import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import type { RunView } from '../../src/runs/view.ts'
import type { AgentInstallation, WholeRun } from '../support/agents.ts'
import { processesWith, supervisorsOf, until } from '../support/holdfast.ts'
import { installHanging } from './hanging-tools.ts'
import type { Hanging } from './hanging-tools.ts'

type Stage = Awaited<ReturnType<typeof installHanging>>

/** Each call that can run has begun, and its commands have said that they are at work. False: it ended before. */
async function isAtWork({ place }: Stage, runId: string, { together, reports }: Hanging): Promise<boolean> {
  return until(`${runId} is at work`, async () => {
    const { actions, endedAt } = await place.whole(runId)
    const begun = actions.filter(({ state }) => state === 'started').length
    if (begun >= together && linesIn(join(place.folder, `ready-${runId}`)) >= reports) return true
    return endedAt === undefined ? undefined : false
  })
}

const linesIn = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean).length : 0)

/** What must be true of a stopped run at the instant when one hears of it: nobody is left, and its actions say why. */
async function expectStopped(place: AgentInstallation, runId: string, { left }: Hanging, words: string): Promise<void> {
  expect(processesWith(`HOLDFAST_RUN=${runId}`)).toEqual([])
  const { actions } = await place.whole(runId)
  expect(actions.map(({ state }) => state)).toEqual(left)
  for (const { state, error } of actions) {
    if (state !== 'withdrawn') expect(error).toContain(words)
    expect(error).not.toMatch(/signal|killed|SIG[A-Z]/)
  }
}

/** For every tool at once; afterwards no supervisor is left, and what runs elsewhere was stopped there. */
async function forEachTool(stage: Stage, work: (name: string, hanging: Hanging) => Promise<void>): Promise<void> {
  const { place, hanging } = stage
  await Promise.all(Object.entries(hanging).map(([name, each]) => work(name, each)))
  await until('no supervisor is left', () => Promise.resolve(supervisorsOf(place.home).length === 0 || undefined))
  const stopped = readFileSync(join(place.folder, 'stopped-elsewhere'), 'utf8').split('\n').filter(Boolean)
  // Once an action: a turn that got more time has several.
  expect([stopped.length > 0, new Set(stopped).size]).toEqual([true, stopped.length])
}

test('every tool, two calls of one too, is stopped by `runs cancel`, which returns when its processes are dead [R1] [R2] [R3] [R4] [control/stop-means-stopped]', async () => {
  const stage = await installHanging({ stubborn: true })
  const { place } = stage
  await place.daemon(Object.keys(stage.hanging).length)
  await forEachTool(stage, async (name, hanging) => {
    const { runId } = await place.send(name)
    expect(await isAtWork(stage, runId, hanging), name).toBe(true)
    expect(await place.json<RunView>(['runs', 'cancel', runId]), name).toMatchObject({ state: 'cancelled' })
    await expectStopped(place, runId, hanging, 'cancelled')
  })
})

test('every tool is stopped by Ctrl-C on the process that carries it out, which then says that it is cancelled [R1] [R3] [R4]', async () => {
  const stage = await installHanging()
  const { place } = stage
  await forEachTool(stage, async (name, hanging) => {
    const sender = place.start(['--json', 'send', '--agent', name, '--wait', 'go'])
    const runId = await until(`the run of ${name} is stored`, () => place.runOf(name))
    expect(await isAtWork(stage, runId, hanging), name).toBe(true)
    sender.kill('SIGINT')
    const { code, stdout, stderr } = await sender.ended
    expect(JSON.parse(stdout), name).toMatchObject({ id: runId, state: 'cancelled' })
    expect(code).toBe(4)
    expect(stderr).toContain(`cancelling ${runId}`)
    await expectStopped(place, runId, hanging, 'cancelled')
  })
})

/** On a slow machine its time may be over before the tool is at work; then it gets more. */
async function timedOutAtWork(stage: Stage, name: string, hanging: Hanging, seconds = 4): Promise<[WholeRun, string]> {
  const { runId } = await stage.place.send(name, { timeoutMs: seconds * 1_000 })
  const atWork = await isAtWork(stage, runId, hanging)
  const run = await stage.place.ended(runId)
  return atWork ? [run, `timed out after ${seconds}s`] : timedOutAtWork(stage, name, hanging, seconds * 2)
}

test('every tool is stopped by the time of its turn, and says so [R1] [R3] [R4]', async () => {
  const stage = await installHanging()
  await stage.place.daemon(Object.keys(stage.hanging).length)
  await forEachTool(stage, async (name, hanging) => {
    const [run, error] = await timedOutAtWork(stage, name, hanging)
    expect(run, name).toMatchObject({
      state: 'failed',
      code: 'timeout',
      error: expect.stringContaining(error) as string,
    })
    await expectStopped(stage.place, run.id, hanging, error)
  })
})

test('whoever waits for a daemon and goes away leaves the run alone, and is told how to stop it', async () => {
  const stage = await installHanging({ only: 'shell' })
  const { place } = stage
  await place.daemon()
  const sender = place.start(['send', '--agent', 'shell', '--wait', 'go'])
  const runId = await until('the run is stored', () => place.runOf('shell'))
  await isAtWork(stage, runId, stage.hanging['shell']!)
  sender.kill('SIGINT')
  const { code, stderr } = await sender.ended
  expect({ code, stderr }).toEqual({ code: 130, stderr: expect.stringContaining(`holdfast runs cancel ${runId}`) })
  expect(await place.whole(runId)).toMatchObject({ state: 'running' })
  await place.json(['runs', 'cancel', runId])
})

test('what cannot be stopped from here is said in the documentation, and how to stop it [R4]', () => {
  const text = readFileSync(new URL('../../docs/tools.md', import.meta.url), 'utf8')
  expect(text).toMatch(/Without a `stop` command Holdfast cannot end what runs elsewhere/)
  expect(text).toContain('"stop": [')
})
