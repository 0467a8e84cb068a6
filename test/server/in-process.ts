import { main } from '../../src/cli/main.ts'
import type { Ended } from '../support/holdfast.ts'

/** A command as it is typed, in this process: a hundred of them would be a hundred starts. One at a time. */
export async function typed(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ended> {
  const [outer, said] = [{ ...process.env }, { stdout: '', stderr: '' }]
  const [stdout, stderr] = [process.stdout.write, process.stderr.write]
  const hear =
    (which: 'stdout' | 'stderr') =>
    (chunk: unknown, ...rest: unknown[]): boolean => {
      said[which] += String(chunk)
      const done = rest.find((each) => typeof each === 'function') as (() => void) | undefined
      done?.()
      return true
    }
  process.stdout.write = hear('stdout') as typeof stdout
  process.stderr.write = hear('stderr') as typeof stderr
  process.env = { PATH: outer['PATH'] ?? '', HOME: outer['HOME'] ?? '/', ...env }
  try {
    return { code: await main([...args]), ...said }
  } finally {
    process.env = outer
    process.stdout.write = stdout
    process.stderr.write = stderr
  }
}
