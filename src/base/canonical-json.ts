import type canonicalizer from 'canonicalize'

import { HoldfastError } from './errors.ts'

let loaded: typeof canonicalizer | undefined

/** Loaded with the first value: finding a package takes as long as opening a database, and who only reads needs none. */
function canonicalize(value: unknown): string | undefined {
  const { createRequire } = process.getBuiltinModule('node:module')
  loaded ??= (createRequire(import.meta.url)('canonicalize') as { readonly default: typeof canonicalizer }).default
  return loaded(value)
}

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
export const digestOf = (value: unknown): string =>
  process.getBuiltinModule('node:crypto').createHash('sha256').update(canonicalJson(value)).digest('hex')

function notJson(cause: unknown): HoldfastError {
  return new HoldfastError('usage/not-json', 'this value cannot be written as JSON', {
    remedy: 'leave out NaN, infinities, functions and broken text',
    cause,
  })
}
