import { createReadStream } from 'node:fs'

/**
 * What is sealed in a file begins with this. A database may cut a long text anywhere, and put the rest elsewhere: then either the
 * mark is whole, or the name of the key behind it.
 */
const BEGINNING = /~hf:[er]:|:[0-9a-f]{8}:[\w-]/
/** One less than the longest of them. */
const OVERLAP = 10

/** Whether something in it can be read with a key alone. It is looked at as bytes, so that nothing opens or changes it. */
export async function hasSealed(path: string): Promise<boolean> {
  let rest = ''
  for await (const chunk of createReadStream(path, { encoding: 'latin1', highWaterMark: 1024 * 1024 })) {
    const text = rest + String(chunk)
    if (BEGINNING.test(text)) return true
    rest = text.slice(-OVERLAP)
  }
  return false
}
