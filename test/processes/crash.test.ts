import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findOwnCgroup, planCgroup } from '../../src/processes/cgroup.ts'
import type { CommandSpec } from '../../src/processes/command.ts'
import {
  judgeProcess,
  killProcess,
  processIdentity,
  thisPlace,
  type ProcessIdentity,
} from '../../src/processes/identity.ts'
import { startCommand } from '../../src/processes/start-command.ts'
import { takeOver } from '../../src/processes/take-over.ts'
import { sweepByMark } from '../../src/processes/trail.ts'
import {
  availableModes,
  begin,
  codeCache,
  endOf,
  fixture,
  freshFolder,
  newMark,
  processesWith,
  seen,
  sh,
  specOf,
  until,
  within,
} from './support.ts'

const modes = await availableModes()

/** Starts a command in a worker of its own, kills that worker with its whole group, and returns the supervisor. */
async function orphanCommand(folder: string, spec: CommandSpec): Promise<ProcessIdentity> {
  const env = { ...process.env, NODE_COMPILE_CACHE: codeCache }
  const worker = fork(fixture('worker.ts'), [folder, JSON.stringify(spec)], { env, detached: true })
  const [identity] = (await within(10_000, once(worker, 'message'), 'the worker did not start')) as [ProcessIdentity]
  process.kill(-(worker.pid ?? 0), 'SIGKILL')
  await once(worker, 'exit')
  return identity
}

const cgroupsOf = (mark: string) =>
  modes.includes('cgroup') ? readdirSync(findOwnCgroup() ?? '').filter((name) => name.includes(mark)) : []

const isDeep = process.env.HOLDFAST_DEEP !== undefined

describe.each(modes)('in containment %s', (containment) => {
  test('a killed supervisor is a cut off command with its output and without survivors', async () => {
    const [partial, away] = [seen('partial'), seen('away')]
    const script = 'echo partial; (setsid sh -c "trap \'\' TERM; echo away >&2; sleep 60" &); sleep 60 | cat'
    const spec = specOf(sh(script), { containment })
    const { command } = await begin(spec, { onStdout: partial.reader, onStderr: away.reader })
    // Both: two pipes have no order, and what the supervisor had not read yet dies with it.
    await Promise.all([partial.promise, away.promise])
    killProcess(command.identity)
    const outcome = await within(5_000, command.ended, 'not settled')
    expect(outcome).toMatchObject({
      kind: 'cut-off',
      output: { stdout: { head: 'partial\n' }, stderr: { head: 'away\n' } },
    })
    expect(processesWith(spec.mark)).toEqual([])
  })

  test('a supervisor killed at any moment of its start leaves no survivor and no false "never started"', async () => {
    for (let delay = 0; delay < 80; delay += isDeep ? 5 : 10) {
      const proof = `${freshFolder()}.ran`
      const spec = specOf(sh('echo ran > "$1"; sleep 60', proof), { containment })
      const { command } = await begin(spec)
      setTimeout(() => killProcess(command.identity), delay)
      const outcome = await within(5_000, command.ended, 'not settled')
      expect(['never-started', 'cut-off']).toContain(outcome.kind)
      expect(processesWith(spec.mark)).toEqual([])
      expect(outcome.kind === 'never-started' && existsSync(proof)).toBe(false)
      expect(cgroupsOf(spec.mark)).toEqual([])
    }
  })

  test('a killed worker does not cost the result: a taker finds the command alive and gets its end [runs/paid-work-kept]', async () => {
    const [folder, gate] = [freshFolder(), `${freshFolder()}.gate`]
    const spec = specOf(sh('echo started; until [ -e "$1" ]; do sleep 0.02; done; echo finished; exit 5', gate), {
      containment,
    })
    const identity = await orphanCommand(folder, spec)
    expect(judgeProcess(identity)).toBe('alive')
    const remains = await takeOver(folder, 'taker', { mark: spec.mark })
    if (remains.kind !== 'alive') throw new Error(remains.kind)
    await startCommand(gate, specOf(['true']), { codeCache })
    const end = endOf(await within(5_000, remains.command.ended, 'no end'))
    expect(end).toMatchObject({ exitCode: 5, stdout: { head: 'started\nfinished\n' } })
    expect(await takeOver(folder, 'another', { mark: spec.mark })).toEqual({ kind: 'ended', end })
  })

  test('a taker can stop what it took over', async () => {
    const folder = freshFolder()
    const spec = specOf(sh('echo started; sleep 60 | cat'), { containment })
    await orphanCommand(folder, spec)
    const remains = await takeOver(folder, 'taker', { mark: spec.mark })
    if (remains.kind !== 'alive') throw new Error(remains.kind)
    remains.command.stop('lease-lost')
    expect(endOf(await within(5_000, remains.command.ended, 'no end')).stopped?.why).toBe('lease-lost')
    expect(processesWith(spec.mark)).toEqual([])
  })

  test('with worker and supervisor both killed, a taker kills the rest and says cut off', async () => {
    const folder = freshFolder()
    const spec = specOf(sh('echo started; sleep 60 & sleep 60'), { containment })
    const supervisor = await orphanCommand(folder, spec)
    killProcess(supervisor)
    await until(() => judgeProcess(supervisor) === 'dead', 2_000, 'the supervisor is dead')
    const remains = await takeOver(folder, 'taker', { mark: spec.mark })
    expect(remains).toMatchObject({ kind: 'cut-off', output: { stdout: { head: 'started\n', spilledBytes: 8 } } })
    expect(processesWith(spec.mark)).toEqual([])
  })
})

test('a folder that nobody owns is fenced: a late supervisor starts nothing', async () => {
  const [folder, proof] = [freshFolder(), `${freshFolder()}.ran`]
  const spec = specOf(sh('echo ran > "$1"', proof))
  expect(await takeOver(folder, 'taker', { mark: spec.mark })).toEqual({ kind: 'never-started' })
  const late = await startCommand(folder, spec, { codeCache })
  expect(await late.ended).toEqual({ kind: 'never-started' })
  expect(existsSync(proof)).toBe(false)
  expect(JSON.parse(readFileSync(join(folder, 'owner.json'), 'utf8'))).toEqual({ kind: 'fenced', by: 'taker' })
})

test.skipIf(!modes.includes('cgroup'))('the empty cgroup of a supervisor that owned nothing is removed', async () => {
  const mark = newMark()
  mkdirSync(planCgroup(mark)?.forCommand ?? '')
  expect(await takeOver(freshFolder(), 'taker', { mark })).toEqual({ kind: 'never-started' })
  expect(cgroupsOf(mark)).toEqual([])
})

const ROUNDS = isDeep ? 200 : 30

test('of a taker and a starting supervisor exactly one wins, whoever comes first', { timeout: 300_000 }, async () => {
  const seenKinds = new Set<string>()
  // Where the two meet depends on the machine: each round goes a step towards whoever came second.
  let delayMs = 40
  for (let round = 0; round < ROUNDS; round += 1) {
    const [folder, proof] = [freshFolder(), `${freshFolder()}.ran`]
    const spec = specOf(sh('echo ran >> "$1"', proof), { containment: 'mark' })
    const command = await startCommand(folder, spec, { codeCache })
    await new Promise((resolve) => setTimeout(resolve, delayMs))
    const remains = await takeOver(folder, 'taker', { mark: spec.mark })
    seenKinds.add(remains.kind)
    delayMs *= remains.kind === 'never-started' ? 1.25 : 0.85
    const outcome = await within(10_000, command.ended, 'no end')
    const ran = existsSync(proof) ? readFileSync(proof, 'utf8') : ''
    expect(ran).toBe(remains.kind === 'never-started' ? '' : 'ran\n')
    expect(outcome.kind).toBe(remains.kind === 'never-started' ? 'never-started' : 'ended')
  }
  expect(seenKinds).toContain('never-started')
  expect([...seenKinds].some((kind) => kind !== 'never-started')).toBe(true)
})

test('what an earlier boot left behind is cut off, and nobody who has its numbers now is touched', async () => {
  const folder = freshFolder()
  mkdirSync(folder)
  // A group whose leader is gone: only the boot tells that it is not the command's.
  const leader = spawn('/bin/sh', ['-c', 'sleep 60 & echo $!'], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  const [printed] = (await once(leader.stdout, 'data')) as [Buffer]
  const stranger = processIdentity(Number(printed.toString()))
  if (stranger === undefined || leader.exitCode === null) await once(leader, 'exit')
  const identity = { ...thisPlace(), boot: 'an earlier one', pid: 1, startTime: 1 }
  const trail = { mark: newMark(), since: 0, leader: { pid: leader.pid, startTime: 1 }, cgroup: null, holder: null }
  const leave = (name: string, content: unknown) => writeFileSync(join(folder, name), JSON.stringify(content))
  leave('owner.json', { kind: 'supervisor', identity, mark: trail.mark, cgroup: null })
  leave('command.json', { startedAt: 1, trail, containment: { kind: 'mark', detail: '' } })
  leave('starting.json', { at: 1 })
  expect((await takeOver(folder, 'taker', trail)).kind).toBe('cut-off')
  expect(stranger !== undefined && killProcess(stranger)).toBe(true)
})

test('several starts in the same folder run nothing twice and do not disturb each other', async () => {
  for (let round = 0; round < (isDeep ? 10 : 5); round += 1) {
    const [folder, proof] = [freshFolder(), `${freshFolder()}.ran`]
    const spec = specOf(sh('echo ran >> "$1"', proof))
    const started = await Promise.all([1, 2, 3].map(() => startCommand(folder, spec, { codeCache })))
    const outcomes = await Promise.all(started.map((command) => command.ended))
    expect(outcomes.map((outcome) => endOf(outcome).exitCode)).toEqual([0, 0, 0])
    expect(readFileSync(proof, 'utf8')).toBe('ran\n')
    expect(cgroupsOf(spec.mark)).toEqual([])
  }
})

/** Says that it has begun, waits for a gate, and ends. */
const gated = (gate: string) => specOf(sh('echo started; until [ -e "$1" ]; do sleep 0.02; done', gate))

test('a folder that is removed while its command runs proves nothing to the worker that started it', async () => {
  const [gate, begun] = [`${freshFolder()}.gate`, seen('started')]
  const { folder, mark, command } = await begin(gated(gate), { onStdout: begun.reader })
  await begun.promise
  rmSync(folder, { recursive: true })
  writeFileSync(gate, '')
  expect((await within(10_000, command.ended, 'no end')).kind).toBe('cut-off')
  expect(processesWith(mark)).toEqual([])
  // An empty one in its place would be the proof, for whoever comes next, that nothing was started.
  expect(existsSync(folder)).toBe(false)
})

test('a folder that is removed while its command runs proves nothing to the worker that adopted it', async () => {
  const [folder, gate] = [freshFolder(), `${freshFolder()}.gate`]
  const spec = gated(gate)
  await orphanCommand(folder, spec)
  await until(() => existsSync(join(folder, 'command.json')), 5_000, 'it runs')
  const remains = await takeOver(folder, 'taker', { mark: spec.mark })
  if (remains.kind !== 'alive') throw new Error(remains.kind)
  rmSync(folder, { recursive: true })
  writeFileSync(gate, '')
  expect((await within(10_000, remains.command.ended, 'no end')).kind).toBe('cut-off')
  expect(processesWith(spec.mark)).toEqual([])
})

test('whoever adopted a command and cannot look for its end just now looks again', async () => {
  const [folder, gate] = [freshFolder(), `${freshFolder()}.gate`]
  const spec = gated(gate)
  await orphanCommand(folder, spec)
  const remains = await takeOver(folder, 'taker', { mark: spec.mark })
  if (remains.kind !== 'alive') throw new Error(remains.kind)
  // It cannot be read; of the many reasons the one that is quickly made.
  mkdirSync(join(folder, 'end.json'))
  const looks = new Promise((resolve) => setTimeout(resolve, 300))
  await Promise.race([remains.command.ended, looks])
  rmdirSync(join(folder, 'end.json'))
  writeFileSync(gate, '')
  expect(endOf(await within(10_000, remains.command.ended, 'no end')).exitCode).toBe(0)
})

test('a sweep by mark ends processes whose files are gone', async () => {
  const [mark, ready] = [newMark(), seen('ready')]
  const { command } = await begin(specOf(sh('setsid sh -c "echo ready; sleep 60"; true'), { mark }), {
    onStdout: ready.reader,
  })
  await ready.promise
  expect(await sweepByMark(mark)).toBeGreaterThanOrEqual(2)
  expect(processesWith(mark)).toEqual([])
  expect((await command.ended).kind).toBe('cut-off')
})
