import type { Path } from './json-text.ts'

/** Where a value leads back into itself, as one that a program made can; a text cannot. */
export function findCycle(value: unknown, path: Path = [], above: readonly unknown[] = []): Path | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (above.includes(value)) return path
  for (const [key, each] of Object.entries(value)) {
    const found = findCycle(each, [...path, Array.isArray(value) ? Number(key) : key], [...above, value])
    if (found !== undefined) return found
  }
  return undefined
}
