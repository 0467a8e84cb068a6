/** A diff as `git diff` prints it, taken apart so that it can be shown file by file. */

export type LineKind = 'added' | 'removed' | 'same' | 'place' | 'about'

export interface DiffLine {
  readonly kind: LineKind
  readonly text: string
}

export interface DiffFile {
  readonly path: string
  readonly added: number
  readonly removed: number
  readonly lines: readonly DiffLine[]
}

export function filesOf(diff: string): readonly DiffFile[] {
  const starts = [...diff.matchAll(/^diff --git .*$/gm)].map(({ index }) => index)
  return starts.map((start, at) => fileOf(diff.slice(start, starts[at + 1] ?? diff.length)))
}

function fileOf(part: string): DiffFile {
  const [first = '', ...rest] = part.replace(/\n$/, '').split('\n')
  const body = rest.findIndex((line) => line.startsWith('@@'))
  const about = body === -1 ? rest : rest.slice(0, body)
  const lines = (body === -1 ? [] : rest.slice(body)).map(lineOf)
  return {
    path: pathOf(first, about),
    added: lines.filter(({ kind }) => kind === 'added').length,
    removed: lines.filter(({ kind }) => kind === 'removed').length,
    lines: [...about.filter(isTelling).map((text) => ({ kind: 'about' as const, text })), ...lines],
  }
}

/** Where it is new, or was before it was removed; a rename shows both. */
function pathOf(first: string, about: readonly string[]): string {
  const after = (word: string) => about.find((line) => line.startsWith(word))?.slice(word.length)
  const [from, to] = [after('rename from '), after('rename to ')]
  if (from !== undefined && to !== undefined) return `${from} → ${to}`
  const named = [after('+++ '), after('--- ')].find((each) => each !== undefined && each !== '/dev/null')
  return named === undefined ? (first.split(' b/')[1] ?? first) : named.replace(/^"?[ab]\//, '').replace(/[\t"]+$/, '')
}

/** The rest repeats what the heading says. */
const isTelling = (line: string) => !/^(index |--- |\+\+\+ |rename |similarity )/.test(line)

const KINDS: Readonly<Record<string, LineKind>> = { '+': 'added', '-': 'removed', '@': 'place', ' ': 'same' }

const lineOf = (text: string): DiffLine => ({ kind: KINDS[text[0] ?? ' '] ?? 'about', text })
