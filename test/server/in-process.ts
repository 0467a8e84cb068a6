import { main } from '../../src/cli/main.ts'
import type { Ended } from '../support/holdfast.ts'

/** What a stream is given goes to `take` until the returned function is called. */
function divert(stream: NodeJS.WriteStream, take: (text: string) => void): () => void {
  const own = Object.getOwnPropertyDescriptor(stream, 'write')
  stream.write = (chunk: unknown, ...rest: unknown[]): boolean => {
    take(String(chunk))
    const done = rest.find((each) => typeof each === 'function') as (() => void) | undefined
    done?.()
    return true
  }
  return () => {
    if (own === undefined) Reflect.deleteProperty(stream, 'write')
    else Object.defineProperty(stream, 'write', own)
  }
}

/** A command as it is typed, in this process: a hundred of them would be a hundred starts. One at a time. */
export async function typed(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ended> {
  const [outer, said] = [{ ...process.env }, { stdout: '', stderr: '' }]
  const restore = [
    divert(process.stdout, (text) => (said.stdout += text)),
    divert(process.stderr, (text) => (said.stderr += text)),
  ]
  process.env = { PATH: outer['PATH'] ?? '', HOME: outer['HOME'] ?? '/', ...env }
  try {
    return { code: await main([...args]), ...said }
  } finally {
    process.env = outer
    for (const undo of restore) undo()
  }
}
