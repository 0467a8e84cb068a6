import { HoldfastError } from '../base/errors.ts'
import { lineAndColumn } from '../base/json-tree.ts'
import { pathKey } from './json-text.ts'
import type { JsonText, Path } from './json-text.ts'
import { nearest } from './nearest.ts'

/** One thing that is wrong with a configuration, where, and what to do about it. */
export interface Problem {
  readonly path: Path
  readonly what: string
  readonly remedy: string
}

/** Gathers what is wrong, so that one look at the file mends all of it. */
export type Complain = (path: Path, what: string, remedy: string) => undefined

export type Source = Pick<JsonText, 'offsets'> & { readonly text: string }

/** A module of its own has no lines that we could name; its paths have to do. */
export function configError(name: string, problems: readonly Problem[], source: Source | undefined): HoldfastError {
  const [only] = problems
  if (only !== undefined && problems.length === 1) {
    return new HoldfastError('usage/config', `${place(name, only.path, source)}: ${sentence(only)}`, {
      remedy: only.remedy,
    })
  }
  const lines = inOrder(problems, source).map(
    (each) => `  ${place(name, each.path, source)}: ${sentence(each)}; ${each.remedy}`,
  )
  // Each line has its own remedy.
  return new HoldfastError('usage/config', `${problems.length} things are wrong:\n${lines.join('\n')}`)
}

/** As they come in the file, for whoever goes through it from top to bottom. */
const inOrder = (problems: readonly Problem[], source: Source | undefined): readonly Problem[] =>
  source === undefined ? problems : problems.toSorted((a, b) => offsetOf(source, a.path) - offsetOf(source, b.path))

const sentence = ({ path, what }: Problem) => (path.length === 0 ? `it ${what}` : `"${dotted(path)}" ${what}`)

const dotted = (path: Path): string =>
  path
    .map((part, index) =>
      typeof part === 'number' ? `[${part}]` : index === 0 ? shortened(part) : `.${shortened(part)}`,
    )
    .join('')

/** Longer than any name of a setting: each mistake below such a key would repeat all of it. */
const MOST_CHARACTERS = 200

const shortened = (key: string): string =>
  key.length <= MOST_CHARACTERS ? key : `${key.slice(0, MOST_CHARACTERS).toWellFormed()}…`

function place(name: string, path: Path, source: Source | undefined): string {
  if (source === undefined) return name
  const { line, column } = lineAndColumn(source.text, offsetOf(source, path))
  return `${name}:${line}:${column}`
}

/** What is missing has no place; then it is the thing in which it is missing. */
function offsetOf(source: Source, path: Path): number {
  const offset = source.offsets.get(pathKey(path))
  return offset ?? (path.length === 0 ? 0 : offsetOf(source, path.slice(0, -1)))
}

/** `did you mean "tools"?`, or the list of what there is. */
export function suggest(word: string, known: readonly string[]): string {
  const meant = nearest(word, known)
  if (meant !== undefined) return `did you mean "${meant}"?`
  return known.length === 0 ? 'there are none' : `known here: ${known.map(shortened).join(', ')}`
}
