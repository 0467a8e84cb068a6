import { HoldfastError } from './errors.ts'
import { beginningOf } from './text.ts'

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
type Unit = keyof typeof UNITS

const SHOWN_BYTES = 100

/** Reads `500ms`, `10s`, `30m`, `12h`, `14d`. */
export function parseDuration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim())
  const ms = match === null ? Number.NaN : Math.round(Number(match[1]) * UNITS[match[2] as Unit])
  if (!Number.isSafeInteger(ms) || ms <= 0) {
    throw new HoldfastError('usage/duration', `"${beginningOf(text, SHOWN_BYTES)}" is not a duration`, {
      remedy: 'write a positive number with a unit, as 500ms, 10s, 30m, 12h or 14d',
    })
  }
  return ms
}

/** The shortest exact form in one unit (`90s` stays `90s`), so that what is printed can be typed in again. */
export function formatDuration(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    if (ms >= UNITS[unit] && ms % UNITS[unit] === 0) return `${ms / UNITS[unit]}${unit}`
  }
  return `${ms}ms`
}
