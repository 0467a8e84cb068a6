import { loadedBy } from './imports.ts'
import { dottedName, parse, walk, type Node } from './syntax.ts'
import type { SourceFile } from './tree.ts'

/** Something that tests have to prove, by its id in square brackets in a title. */
export interface Owed {
  readonly id: string
  readonly text: string
  /** The part of the work that brings it. */
  readonly part: number
  /** From then on a missing proof breaks the build. */
  readonly due: boolean
}

export interface Title {
  readonly file: string
  readonly title: string
}

/** Ids of both kinds: `[runs/one-terminal]` and `[T1]`. */
const PROMISE = /\[([a-z][a-z-]*\/[a-z][a-z-]*)\]/g
const CLAIM = /\[([A-Z]\d+)\]/g

export const promisesIn = (title: string): string[] => Array.from(title.matchAll(PROMISE), (match) => match[1]!)
export const claimsIn = (title: string): string[] => Array.from(title.matchAll(CLAIM), (match) => match[1]!)

export interface Verdict {
  /** Due, but no title cites it. */
  readonly unproven: readonly string[]
  /** Cited, but nobody promised it. */
  readonly unknown: readonly string[]
  /** Not due and not proven. */
  readonly notYet: readonly string[]
  readonly proven: readonly string[]
}

export function judge(owed: readonly Owed[], titles: readonly Title[], idsIn: (title: string) => string[]): Verdict {
  const cited = new Set(titles.flatMap(({ title }) => idsIn(title)))
  const known = new Set(owed.map((each) => each.id))
  const ids = (pick: (each: Owed) => boolean) => owed.filter(pick).map((each) => each.id)
  return {
    unproven: ids((each) => each.due && !cited.has(each.id)),
    unknown: titles.flatMap(({ file, title }) =>
      idsIn(title)
        .filter((id) => !known.has(id))
        .map((id) => `${file}: [${id}] in "${title}"`),
    ),
    notYet: ids((each) => !each.due && !cited.has(each.id)),
    proven: ids((each) => cited.has(each.id)),
  }
}

/** The titles of all tests that are run: in test files, and in the suites that these load. */
export function titlesIn(files: readonly SourceFile[]): Title[] {
  const run = filesRun(files)
  return files.filter((file) => run.has(file.path)).flatMap((file) => titlesOf(file))
}

/** Test files and everything that they load, over any number of steps. */
export function filesRun(files: readonly SourceFile[]): Set<string> {
  const byPath = new Map(files.map((file) => [file.path, file]))
  const waiting = files.map((file) => file.path).filter((path) => path.endsWith('.test.ts'))
  const seen = new Set<string>()
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const file = byPath.get(path)
    if (file === undefined || seen.has(path)) continue
    seen.add(path)
    waiting.push(...loadedBy(file))
  }
  return seen
}

const TEST = /^(test|it|describe|suite)(\.|$)/
const SWITCHED_OFF = /\.(skip|todo)\b/

/**
 * Titles of `test`, `it` and `describe`, with their variants, and of cases in a table (`{ title: '…', check() {…} }`);
 * nothing from what is skipped or still to do.
 */
export function titlesOf(file: SourceFile): Title[] {
  const found: Title[] = []
  walk(parse(file), (node) => {
    const caseTitle = node.type === 'ObjectExpression' ? titleOfCase(node) : undefined
    if (caseTitle !== undefined) found.push({ file: file.path, title: caseTitle })
    if (node.type !== 'CallExpression') return true
    const name = testName(node['callee'] as Node)
    const [first, second] = node['arguments'] as readonly (Node | undefined)[]
    const title = first === undefined ? undefined : textOf(first)
    if (name === undefined || title === undefined || second === undefined) return true
    if (SWITCHED_OFF.test(name)) return false
    found.push({ file: file.path, title })
    return true
  })
  return found
}

function titleOfCase(object: Node): string | undefined {
  const properties = (object['properties'] as readonly Node[]).filter((each) => each.type === 'Property')
  const title = properties.find((each) => dottedName(each['key']) === 'title')
  const isCase = properties.some((each) => /Function/.test((each['value'] as Node).type))
  return isCase && title !== undefined ? textOf(title['value'] as Node) : undefined
}

/** `test.each` of `test.each(cases)('title', …)` and of a tagged table as well. */
function testName(callee: Node): string | undefined {
  const inner = (callee.type === 'CallExpression' && callee['callee']) || callee['tag'] || callee
  const name = dottedName(inner)
  return name !== undefined && TEST.test(name) ? name : undefined
}

function textOf(node: Node): string | undefined {
  if (typeof node['value'] === 'string') return node['value']
  if (node.type === 'BinaryExpression') return `${textOf(node['left'] as Node)}${textOf(node['right'] as Node)}`
  if (node.type !== 'TemplateLiteral') return undefined
  const pieces = node['quasis'] as readonly { readonly value: { readonly cooked: string } }[]
  return pieces.map((piece) => piece.value.cooked).join('…')
}
