import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test, vi } from 'vitest'

import { systemClock as clock } from '../base/clock.ts'
import { runCaptured, type CapturedOptions } from './captured-command.ts'

const run = (script: string, more: Partial<CapturedOptions> = {}) =>
  runCaptured(['/bin/sh', '-c', script], { clock, cwd: '/', env: {}, timeoutMs: 30_000, maxBytes: 1_000, ...more })

function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

test('bytes go in and come out as they are, from memory or from a file', async () => {
  const bytes = Buffer.from([0, 255, 10, 0])
  const file = join(scratch(), 'input')
  writeFileSync(file, bytes)
  expect(await run('cat; exit 3', { input: bytes })).toMatchObject({ code: 3, stdout: bytes })
  expect((await run('cat; echo said >&2', { input: { file } })).stdout).toEqual(bytes)
  expect(await run('cat')).toMatchObject({ code: 0, stdout: Buffer.alloc(0) })
})

test('one that says too much, takes too long or is cancelled has ended with all that it started when it is answered', async () => {
  const alive = join(scratch(), 'pid')
  const isGone = () => {
    const pid = readFileSync(alive, 'utf8').trim()
    try {
      // Ended before it could say its number; or ended and not yet buried: that is gone, too.
      return pid === '' || readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')[2] === 'Z'
    } catch {
      return true
    }
  }
  const child = `sleep 1000 & echo $! > ${alive};`
  // Its files are closed by then; the kernel buries it a moment later.
  const gone = () => vi.waitUntil(isGone, { timeout: 10_000 })
  const much = await run(`${child} yes`)
  expect([much.cut, much.stdout.length]).toEqual(['output', 1_000])
  await gone()
  expect((await run(`${child} wait`, { timeoutMs: 200 })).cut).toBe('timeout')
  await gone()
  const stop = new AbortController()
  const waiting = run(`${child} wait`, { signal: stop.signal })
  stop.abort()
  expect((await waiting).cut).toBe('cancelled')
  await gone()
  expect((await run('exit 0', { signal: stop.signal })).cut).toBe('cancelled')
  expect(
    (await runCaptured(['/no/such/program'], { clock, cwd: '/', env: {}, timeoutMs: 1_000, maxBytes: 1 })).cut,
  ).toBe('absent')
})
