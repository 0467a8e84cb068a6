import { LIMITS } from '../base/limits.ts'

/**
 * A path inside of a repository is bytes, not text. Here it is a string with one character a byte, so that it can be compared, split and kept in a
 * map; `onDisk` gives back the bytes.
 */
export type RawPath = string & { readonly __raw?: never }

export const rawPath = (text: string): RawPath => Buffer.from(text).toString('latin1')
const bytesOf = (path: RawPath): Buffer => Buffer.from(path, 'latin1')

/** Where a path of a repository is on the disk, as what the file functions take. */
export const onDisk = (top: string, path: RawPath): Buffer => Buffer.concat([Buffer.from(`${top}/`), bytesOf(path)])

/** The records of what git prints with `-z`. */
export function records(output: Buffer): RawPath[] {
  const all = output.toString('latin1').split('\0')
  if (all.at(-1) === '') all.pop()
  return all
}

/** The input of what git reads with `-z`. */
export const asRecords = (paths: Iterable<RawPath>): Buffer => Buffer.from([...paths, ''].join('\0'), 'latin1')

const NAMED: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\r': '\\r', '"': '\\"', '\\': '\\\\' }

/** For people: text as it is, or quoted as git quotes it where it is no UTF-8 or would not stay on its line. */
export function shownPath(path: RawPath): string {
  const bytes = bytesOf(path)
  const text = bytes.toString()
  if (Buffer.from(text).equals(bytes) && !/[\p{Cc}"\\]/u.test(text)) return text
  const quoted = Array.from(path, (character) => NAMED[character] ?? octal(character))
  return `"${quoted.join('')}"`
}

function octal(character: string): string {
  const code = character.charCodeAt(0)
  return code < 0x20 || code >= 0x7f ? `\\${code.toString(8).padStart(3, '0')}` : character
}

export const parentOf = (path: RawPath): RawPath => path.slice(0, Math.max(0, path.lastIndexOf('/')))

/** `a`, `a/b` of `a/b/c`. */
export function parentsOf(path: RawPath): RawPath[] {
  const parents: RawPath[] = []
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) parents.push(path.slice(0, at))
  return parents
}

export const isWithin = (path: RawPath, folders: readonly RawPath[]) =>
  folders.some((folder) => path === folder || path.startsWith(`${folder}/`))

export const listed = <T>(all: readonly T[]): readonly T[] => all.slice(0, LIMITS.pathsListed)
