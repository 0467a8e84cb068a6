import { createHash } from 'node:crypto'

import canonicalize from 'canonicalize'

import { HoldfastError } from './errors.ts'

/** RFC 8785: one text for one value, whatever the order of its keys. What JSON cannot say is refused, not changed. */
export function canonicalJson(value: unknown): string {
  let text: string | undefined
  try {
    text = canonicalize(value)
  } catch (cause) {
    throw notJson(cause)
  }
  if (text === undefined) throw notJson(undefined)
  return text
}

/** SHA-256 of the canonical form, in hexadecimal. */
export const digestOf = (value: unknown): string => createHash('sha256').update(canonicalJson(value)).digest('hex')

function notJson(cause: unknown): HoldfastError {
  return new HoldfastError('usage/not-json', 'this value cannot be written as JSON', {
    remedy: 'leave out NaN, infinities, functions and broken text',
    cause,
  })
}
