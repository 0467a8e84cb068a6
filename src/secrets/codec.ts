import { HoldfastError } from '../base/errors.ts'
import { write } from './forms.ts'
import type { Key } from './key.ts'
import type { Form, Found, Matcher } from './matcher.ts'
import { isAnyUnresolved, mayBeUnresolved, unresolved, unresolvedIn } from './nonce.ts'

/*
 * What is stored instead of a secret:
 *
 *   ~hf:r:KEY:NAME:FORM:MAC~   a known one: its name, signed, and no value
 *   ~hf:e:KEY:BYTES~           what has the shape of one: encrypted
 *   ~hf=~                      the three characters ~hf, whoever wrote them
 *
 * Whatever somebody wrote that looks like one of these is stored as the last, so it comes back as it was written and as nothing
 * else: a copied token is never given a value. What cannot be put back here is in memory as ~hf?NONCE:…~, which nobody outside
 * can write, and is stored again as it was.
 */
const MARK = '~hf'
const LITERAL = '~hf=~'
const STORED = /~hf(?:=|:([^~]*))~/g
/** Text that is longer than this between two marks is none of ours. */
const NAME = /^[\w.-]{1,100}$/

/** Between the database or a file, and the exact bytes. */
export interface Codec {
  seal(text: string): string
  open(text: string): string
}

export interface CodecPorts {
  readonly key: Key
  readonly matcher: () => Matcher
  /** The value of a known secret as it is now. */
  readonly valueOf: (name: string) => string | undefined
  readonly encoding: 'utf8' | 'latin1'
}

export function makeCodec(ports: CodecPorts): Codec {
  return {
    seal: (text) => seal(text, ports),
    open: (text) =>
      text.includes(MARK) ? text.replace(STORED, (whole, body?: string) => opened(whole, body, ports)) : text,
  }
}

function seal(text: string, ports: CodecPorts): string {
  if (text.length < MARK.length) return text
  const marked = text.includes(MARK)
  if (!marked) return text.length < SHORTEST ? text : sealed(text, ports, false)
  if (!mayBeUnresolved(text)) return sealed(text, ports, true)
  // What could not be put back goes back as it was; what is between is sealed by itself.
  let [all, from] = ['', 0]
  for (const match of text.matchAll(unresolvedIn())) {
    all += `${sealed(text.slice(from, match.index), ports, true)}~hf:${match[2]}~`
    from = match.index + match[0].length
  }
  return all + sealed(text.slice(from), ports, true)
}

/** Of a known value and of every shape. */
const SHORTEST = 8

function sealed(text: string, ports: CodecPorts, marked: boolean): string {
  const plain = (part: string) => (marked ? part.replaceAll(MARK, LITERAL) : part)
  const found = ports.matcher().find(text)
  if (found.length === 0) return plain(text)
  let [all, from] = ['', 0]
  for (const each of found) {
    all += plain(text.slice(from, each.start)) + token(text, each, ports)
    from = each.end
  }
  return all + plain(text.slice(from))
}

function token(text: string, { start, end, known }: Found, { key, encoding }: CodecPorts): string {
  if (known === undefined) {
    return `~hf:e:${key.id}:${key.encrypt(Buffer.from(text.slice(start, end), encoding))}~`
  }
  const what = `${known.name}:${known.form}`
  return `~hf:r:${key.id}:${what}:${key.sign(what)}~`
}

function opened(whole: string, body: string | undefined, ports: CodecPorts): string {
  if (body === undefined) return MARK
  const { key, encoding, valueOf } = ports
  const [kind, keyId, ...rest] = body.split(':')
  if (keyId !== key.idIfThere) return unresolved('key', body)
  if (kind === 'e') return key.decrypt(rest[0] ?? '')?.toString(encoding) ?? whole
  const [name = '', form = '', mac = ''] = rest
  if (kind !== 'r' || !NAME.test(name) || !key.isSigned(`${name}:${form}`, mac)) return whole
  const value = valueOf(name)
  if (value === undefined) return unresolved('name', body)
  const written = write(value, form as Form)
  return encoding === 'latin1' ? Buffer.from(written).toString('latin1') : written
}

/** Refuses what cannot be performed exactly as it was written: certainly before anything of it happened. */
export function refuseMissing(...values: readonly unknown[]): void {
  if (!isAnyUnresolved()) return
  const missing = values.flatMap((value) =>
    missingIn(typeof value === 'string' ? value : (JSON.stringify(value) ?? '')),
  )
  const names = [...new Set(missing.filter(({ why }) => why === 'name').map(({ what }) => what))].join(', ')
  if (names !== '') {
    throw new HoldfastError('secrets/unknown', `it needs ${names}, whose value is not known here`, {
      remedy: `set ${names} for this process, in its environment or under "secrets" of the configuration`,
    })
  }
  if (missing.length === 0) return
  const keys = [...new Set(missing.map(({ what }) => what))].join(', ')
  throw new HoldfastError('secrets/other-key', `it holds a value that was sealed under another key (${keys})`, {
    remedy: 'copy secrets.key from the home folder that it was written in, or name it with HOLDFAST_SECRET_KEY_FILE',
  })
}

interface Missing {
  readonly why: string
  /** The name of the secret, or the id of the key. */
  readonly what: string
}

function missingIn(text: string): Missing[] {
  if (!mayBeUnresolved(text)) return []
  return [...text.matchAll(unresolvedIn())].map(([, why = '', body = '']) => {
    const [, keyId = '', name = ''] = body.split(':')
    return { why, what: why === 'name' ? name : keyId }
  })
}
