import { dirname, join } from 'node:path/posix'
import { parseSync } from 'oxc-parser'
import type { SourceFile } from './tree.ts'

/** A node of the syntax tree (ESTree, with TypeScript's additions): only what every node has is typed. */
export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

/** Every checker reads the same files; taking a tree out of the parser is most of the time of each. */
const parsed = new Map<string, Node>()

export function parse(file: SourceFile): Node {
  const key = `${file.path}\n${file.text}`
  const tree = parsed.get(key) ?? parseAnew(file)
  parsed.set(key, tree)
  return tree
}

function parseAnew(file: SourceFile): Node {
  const { program, errors } = parseSync(file.path, file.text)
  const [error] = errors
  if (error !== undefined) throw new Error(`${file.path} does not parse: ${error.message}`)
  return program as unknown as Node
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'

/** Half a million nodes are asked for theirs, so it makes nothing but the answer. */
export function childrenOf(node: Node): Node[] {
  const children: Node[] = []
  for (const field in node) {
    const value = node[field]
    if (!Array.isArray(value)) {
      if (isNode(value)) children.push(value)
      continue
    }
    for (const each of value) if (isNode(each)) children.push(each)
  }
  return children
}

/** Visits a node and all below it, parents first, with the way down to it; `false` leaves out what is below. */
export function walk(node: Node, visit: (node: Node, above: readonly Node[]) => boolean | void): void {
  const above: Node[] = []
  const step = (at: Node): void => {
    if (visit(at, above) === false) return
    above.push(at)
    for (const child of childrenOf(at)) step(child)
    above.pop()
  }
  step(node)
}

/** The nodes of a tree by their type: several checkers ask for several types each. */
const byType = new WeakMap<Node, ReadonlyMap<string, readonly Node[]>>()

export function allNodes(root: Node, type: string): readonly Node[] {
  const known = byType.get(root) ?? sorted(root)
  byType.set(root, known)
  return known.get(type) ?? []
}

function sorted(root: Node): ReadonlyMap<string, readonly Node[]> {
  const found = new Map<string, Node[]>()
  walk(root, (node) => {
    const same = found.get(node.type)
    if (same === undefined) found.set(node.type, [node])
    else same.push(node)
  })
  return found
}

/** `Date.now` for such a member access, `setTimeout` for such a name, otherwise undefined. */
export function dottedName(node: unknown): string | undefined {
  if (!isNode(node)) return undefined
  if (node.type === 'Identifier') return String(node['name'])
  if (node.type !== 'MemberExpression' || node['computed'] === true) return undefined
  const object = dottedName(node['object'])
  return object === undefined ? undefined : `${object}.${String((node['property'] as Node)['name'])}`
}

export interface Import {
  readonly specifier: string
  /** Erased before anything runs. `import { type A }` is not: it still loads the file. */
  readonly typeOnly: boolean
}

const IMPORTING = new Set([
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'ImportExpression',
  'TSImportType',
])

export function importsOf(file: SourceFile): Import[] {
  const found: Import[] = []
  walk(parse(file), (node) => {
    const source = askedOfNode(node) ?? (IMPORTING.has(node.type) ? (node['source'] as Node | null | undefined) : null)
    if (typeof source?.['value'] !== 'string') return
    const kind = node['importKind'] ?? node['exportKind']
    found.push({ specifier: source['value'], typeOnly: kind === 'type' || node.type === 'TSImportType' })
  })
  return found
}

/** `process.getBuiltinModule('node:…')` is an import like any other, made later. */
function askedOfNode(node: Node): Node | undefined {
  if (node.type !== 'CallExpression') return undefined
  const isAsking = dottedName(node['callee']) === 'process.getBuiltinModule'
  return isAsking ? (node['arguments'] as readonly Node[])[0] : undefined
}

/** Where a relative import leads, from the root; undefined for packages. */
export const resolveImport = (from: string, specifier: string): string | undefined =>
  specifier.startsWith('.') ? join(dirname(from), specifier) : undefined

/** Line numbers from offsets, counted from 1. */
export function lineCounter(text: string): (offset: number) => number {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return (offset) => {
    const next = starts.findIndex((start) => start > offset)
    return next === -1 ? starts.length : next
  }
}
