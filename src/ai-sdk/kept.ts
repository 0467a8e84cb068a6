/*
 * What a model answered and what a tool returned, as JSON and back. There are dates, addresses and bytes in it; everything else
 * that is not JSON (functions, undefined) is of no meaning there.
 */

const TAGS: readonly string[] = ['$date', '$bytes', '$url', '$plain']

export function keep(value: unknown): unknown {
  if (value instanceof Date) return { $date: value.toISOString() }
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

export function revive(kept: unknown): unknown {
  if (Array.isArray(kept)) return kept.map(revive)
  if (typeof kept !== 'object' || kept === null) return kept
  if (!isTagged(kept)) return within(kept)
  const { $date, $bytes, $url, $plain } = kept as Readonly<Record<string, unknown>>
  if (typeof $date === 'string') return new Date($date)
  if (typeof $bytes === 'string') return new Uint8Array(Buffer.from($bytes, 'base64'))
  return typeof $url === 'string' ? new URL($url) : within($plain as object)
}

const within = (kept: object) => Object.fromEntries(Object.entries(kept).map(([key, each]) => [key, revive(each)]))

/** An object of a provider that looks like one of ours is put into another. */
function isTagged(value: object): boolean {
  const keys = Object.keys(value)
  return keys.length === 1 && TAGS.includes(keys[0]!)
}
