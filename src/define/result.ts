import { describeError } from '../base/errors.ts'
import { TOOL_LIMITS } from '../tools/limits.ts'

export type Kept = { readonly result: unknown } | { readonly trouble: string }

/** What a function returned, as it can be stored: JSON, of a bounded size. */
export function keptResult(value: unknown, most: number = TOOL_LIMITS.resultCharacters): Kept {
  if (value === undefined) return { result: 'done' }
  if (typeof value === 'string' && value.length > most) return { result: bothEnds(value, most) }
  try {
    if (weightOf(value, most, new Set()) <= 0) return { trouble: `it is too large, more than ${most} characters` }
    const text = JSON.stringify(value) as string | undefined
    if (text === undefined) return { trouble: `it is not JSON but a ${typeof value}` }
    return { result: JSON.parse(text) }
  } catch (error) {
    return { trouble: `it is not JSON: ${describeError(error)}` }
  }
}

/** Copied, because a slice would keep the whole text in memory for as long as itself. */
function bothEnds(text: string, most: number) {
  const half = most / 2
  const copy = (part: string) => Buffer.from(part).toString()
  return { head: copy(text.slice(0, half)), tail: copy(text.slice(-half)), totalCharacters: text.length }
}

/**
 * What is left of a budget of characters. Ends as soon as nothing is left, so that a gigabyte is neither copied nor
 * walked through. A circle is passed over here: writing it as JSON says what is wrong.
 */
function weightOf(value: unknown, budget: number, above: Set<object>): number {
  if (typeof value === 'string') return budget - value.length
  if (ArrayBuffer.isView(value)) return budget - 4 * value.byteLength
  if (typeof value !== 'object' || value === null || above.has(value)) return budget - 1
  above.add(value)
  let left = budget - 1
  for (const key in value) {
    left = weightOf((value as Record<string, unknown>)[key], left - key.length, above)
    if (left <= 0) break
  }
  above.delete(value)
  return left
}
