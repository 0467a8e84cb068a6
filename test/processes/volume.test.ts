import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { judgeProcess } from '../../src/processes/identity.ts'
import { startCommand } from '../../src/processes/start-command.ts'
import { begin, codeCache, endOf, freshFolder, processesWith, run, seen, sh, specOf, until, within } from './support.ts'

const GIGABYTE = 1_000_000_000
const PEAK_KB = 150_000

const peakKb = (pid: number) => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])

test('a gigabyte of output passes through without growing the supervisor', { timeout: 60_000 }, async () => {
  // The last byte is written by a command that waits for us, so that its supervisor can still be looked at.
  const gate = `${freshFolder()}.gate`
  const script = `head -c ${GIGABYTE} /dev/zero; echo all >&2; until [ -e "$1" ]; do sleep 0.02; done`
  const all = seen('all')
  let live = 0
  const { command } = await begin(specOf(sh(script, gate)), {
    onStdout: (chunk) => void (live += chunk.length),
    onStderr: all.reader,
  })
  await all.promise
  expect(peakKb(command.identity.pid)).toBeLessThan(PEAK_KB)
  writeFileSync(gate, '')
  const end = endOf(await command.ended)
  expect(end.stdout).toMatchObject({ totalBytes: GIGABYTE, spilledBytes: 64 * 1024 * 1024, truncated: true })
  expect(live).toBe(GIGABYTE)
})

test('a slow reader gets every byte, and holds the command back', async () => {
  const gate = Promise.withResolvers<void>()
  let live = 0
  const done = seen('done')
  let isDone = false
  void done.promise.then(() => (isDone = true))
  const { command } = await begin(specOf(sh('head -c 20000000 /dev/zero; echo done >&2')), {
    onStdout: async (chunk) => {
      live += chunk.length
      await gate.promise
    },
    onStderr: done.reader,
  })
  await until(() => live > 0, 5_000, 'the first chunk')
  expect(isDone).toBe(false)
  gate.resolve()
  expect(endOf(await command.ended).stdout.totalBytes).toBe(20_000_000)
  expect(live).toBe(20_000_000)
})

test('a reader that does not read costs nothing of what a stopped command still prints', async () => {
  const never = new Promise<void>(() => {})
  const script = 'trap "echo cleaned; exit 0" TERM; while :; do echo 0123456789; done'
  const end = await run(specOf(sh(script), { timeoutMs: 700 }), { onStdout: () => never })
  expect(end.endedAt - end.startedAt).toBeLessThan(10_000)
  expect(end.stdout.tail.endsWith('cleaned\n')).toBe(true)
})

test('a reader that does not read delays neither a timeout nor the end for long', async () => {
  const never = new Promise<void>(() => {})
  const ended = run(specOf(sh('yes'), { timeoutMs: 300 }), { onStdout: () => never })
  const end = await within(6_000, ended, 'no end')
  expect(end.stopped?.why).toBe('timeout')
  expect(end.endedAt - end.startedAt).toBeLessThan(10_000)
  // What it could not pass on it did not read either.
  expect(end.stdout.totalBytes).toBeLessThan(50_000_000)
})

const small = mountSmallDisk()

describe.skipIf(small === undefined)('on a full disk', () => {
  test('spilling stops, the command goes on, and its end is recorded', async () => {
    const folder = join(small ?? '', 'spill')
    const command = await startCommand(folder, specOf(sh('head -c 20000000 /dev/zero; echo end')), { codeCache })
    const end = endOf(await within(10_000, command.ended, 'no end'))
    expect(end).toMatchObject({
      exitCode: 0,
      stdout: { totalBytes: 20_000_004, spillError: 'ENOSPC', truncated: true },
    })
    expect(end.stdout.tail.endsWith('end\n')).toBe(true)
    rmSync(folder, { recursive: true })
  })

  test('an end that does not fit waits until there is room', async () => {
    const folder = join(small ?? '', 'end')
    const ready = seen('ready')
    const gate = `${freshFolder()}.gate`
    const spec = specOf(sh('echo ready; until [ -e "$1" ]; do sleep 0.02; done', gate))
    const command = await startCommand(folder, spec, { codeCache, onStdout: ready.reader })
    await ready.promise
    await until(() => existsSync(join(folder, 'command.json')), 5_000, 'command.json')
    const filler = join(small ?? '', 'filler')
    fill(filler)
    mkdirSync(gate)
    await until(() => processesWith(spec.mark).length === 0, 5_000, 'only the supervisor is left')
    // Long enough for several tries.
    const deadline = performance.now() + 400
    await until(() => existsSync(join(folder, 'end.json')) || performance.now() > deadline, 1_000, 'a moment')
    expect(existsSync(join(folder, 'end.json'))).toBe(false)
    expect(judgeProcess(command.identity)).toBe('alive')
    rmSync(filler)
    expect(endOf(await within(10_000, command.ended, 'no end'))).toMatchObject({
      exitCode: 0,
      stdout: { head: 'ready\n' },
    })
  })
})

function fill(path: string): void {
  expect(() => writeFileSync(path, Buffer.alloc(16 * 1024 * 1024))).toThrow('ENOSPC')
}

function mountSmallDisk(): string | undefined {
  const folder = freshFolder()
  try {
    mkdirSync(folder)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', folder], { stdio: 'pipe' })
    afterAll(() => void execFileSync('umount', ['-l', folder]))
    return folder
  } catch (error) {
    console.warn(`a full disk is not tested here, a small one could not be mounted: ${String(error)}`)
    return undefined
  }
}
