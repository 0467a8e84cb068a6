import { expect, test } from 'vitest'
import { completeSpec, describeEnd, DEFAULT_OUTPUT } from './command.ts'

const plain = { exitCode: null, signal: null }

test.each([
  [{ ...plain, exitCode: 0 }, 'exited with status 0'],
  [{ ...plain, exitCode: 3 }, 'exited with status 3'],
  [{ ...plain, signal: 'SIGSEGV' }, 'killed by SIGSEGV'],
  [{ ...plain, exitCode: 127, spawnError: { code: 'ENOENT', message: 'not found: foo' } }, 'not found: foo'],
  [{ ...plain, signal: 'SIGKILL', stopped: { why: 'timeout', afterMs: 1_800_000 } as const }, 'timed out after 30m'],
  [{ ...plain, signal: 'SIGTERM', stopped: { why: 'cancelled', afterMs: 12 } as const }, 'cancelled'],
  [
    { ...plain, exitCode: 0, stopped: { why: 'lease-lost', afterMs: 12 } as const },
    'stopped because its worker lost the claim',
  ],
])('%j is told as "%s" [R1]', (end, sentence) => {
  expect(describeEnd(end)).toBe(sentence)
})

test('a spec gets its defaults and an absolute folder', () => {
  const spec = { argv: ['true'] as const, cwd: '.', env: {}, mark: 'ab', timeoutMs: null, output: { headBytes: 1 } }
  const place = { host: 'h', boot: 'b', pidNamespace: 'n' }
  const stored = completeSpec(spec, { live: { stdout: false, stderr: true }, place, sealed: true })
  expect(stored).toMatchObject({ cwd: process.cwd(), graceMs: 5_000, containment: 'auto' })
  expect(stored.output).toEqual({ ...DEFAULT_OUTPUT, headBytes: 1 })
})
