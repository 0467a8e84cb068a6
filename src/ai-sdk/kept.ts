/*
 * What a model answered and what a tool returned, as JSON and back. There are dates, addresses and bytes in it; everything else
 * that is not JSON (functions, undefined) is of no meaning there.
 */

const TAGS: readonly string[] = ['$date', '$bytes', '$url', '$plain']

export function keep(value: unknown): unknown {
  // One that is none is null in JSON.
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : { $date: value.toISOString() }
  if (value instanceof URL) return { $url: value.href }
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString('base64') }
  if (Array.isArray(value)) return value.map(keep)
  if (typeof value !== 'object' || value === null) return value
  if ('toJSON' in value && typeof value.toJSON === 'function') return keep(value.toJSON())
  const kept = Object.fromEntries(
    Object.entries(value).flatMap(([key, each]) => (each === undefined ? [] : [[key, keep(each)]])),
  )
  return isTagged(kept) ? { $plain: kept } : kept
}

/**
 * Of anything, also of what was never kept: what a person said that a call had brought, or an older version wrote down. What
 * `keep` would not have made of a date, an address or bytes stays the object that it is.
 */
export function revive(kept: unknown): unknown {
  if (Array.isArray(kept)) return kept.map(revive)
  if (typeof kept !== 'object' || kept === null) return kept
  return (isTagged(kept) ? untagged(kept as Readonly<Record<string, unknown>>) : undefined) ?? within(kept)
}

function untagged({ $date, $bytes, $url, $plain }: Readonly<Record<string, unknown>>): unknown {
  if (typeof $date === 'string') return dateOf($date)
  if (typeof $bytes === 'string') return bytesOf($bytes)
  if (typeof $url === 'string') return URL.parse($url) ?? undefined
  return typeof $plain === 'object' && $plain !== null && isTagged($plain) ? within($plain) : undefined
}

function dateOf(text: string): Date | undefined {
  const date = new Date(text)
  return !Number.isNaN(date.getTime()) && date.toISOString() === text ? date : undefined
}

function bytesOf(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? new Uint8Array(bytes) : undefined
}

const within = (kept: object) => Object.fromEntries(Object.entries(kept).map(([key, each]) => [key, revive(each)]))

/** An object of a provider that looks like one of ours is put into another. */
function isTagged(value: object): boolean {
  const keys = Object.keys(value)
  return keys.length === 1 && TAGS.includes(keys[0]!)
}
