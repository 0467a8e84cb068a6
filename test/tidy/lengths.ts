import { dottedName, lineCounter, parse, walk, type Node } from './syntax.ts'
import type { SourceFile } from './tree.ts'

/** In lines. What separates code that is praised from code that is endured is the tail, not the median. */
export const LIMITS = {
  function: { longest: 70, p95: 35 },
  file: { longest: 500, p95: 300 },
} as const

/**
 * The ratchet: what was too long when the limit came, with the length it had. An entry may only shrink, and goes when
 * what it names is within the limit. Nothing is added here.
 */
export const KNOWN_LONG: Readonly<Record<string, number>> = {}

export interface Length {
  /** `src/runs/finish.ts` or `src/runs/finish.ts:finishRun`. */
  readonly what: string
  readonly lines: number
}

export const fileLengths = (files: readonly SourceFile[]): Length[] =>
  files.map((file) => ({ what: file.path, lines: file.text.replace(/\n$/, '').split('\n').length }))

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

/** Functions with a body in braces; `(x) => x + 1` is an expression. A `describe` is a heading, not a function. */
export function functionLengths(files: readonly SourceFile[]): Length[] {
  return files.flatMap((file) => {
    const lineAt = lineCounter(file.text)
    const found: Length[] = []
    walk(parse(file), (node, above) => {
      const body = node['body'] as Node | null | undefined
      if (!FUNCTIONS.has(node.type) || body?.type !== 'BlockStatement' || isHeading(above.at(-1))) return
      const name = nameOf(node, above.at(-1)) ?? `line ${lineAt(node.start)}`
      found.push({ what: `${file.path}:${name}`, lines: lineAt(node.end - 1) - lineAt(node.start) + 1 })
    })
    return found
  })
}

function isHeading(parent: Node | undefined): boolean {
  if (parent?.type !== 'CallExpression') return false
  const callee = parent['callee'] as Node
  const name = dottedName(callee.type === 'CallExpression' ? callee['callee'] : callee)
  return name !== undefined && /^(describe|suite|inBrowser)(\.|$)/.test(name)
}

function nameOf(node: Node, parent: Node | undefined): string | undefined {
  const named = (node['id'] ?? parent?.['id'] ?? parent?.['key']) as Node | null | undefined
  return typeof named?.['name'] === 'string' ? named['name'] : undefined
}

/** One sentence for each thing that is too long, or that the ratchet names without need. */
export function tooLong(lengths: readonly Length[], longest: number, ratchet = KNOWN_LONG): string[] {
  return lengths.flatMap(({ what, lines }) => {
    const allowed = ratchet[what]
    if (allowed !== undefined && lines <= longest) return [`${what} is within the limit now: take it off the ratchet`]
    const most = allowed ?? longest
    return lines > most ? [`${what} has ${lines} lines, at most ${most}`] : []
  })
}

export function percentile(lengths: readonly Length[], share: number): number {
  const sorted = lengths.map((each) => each.lines).toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0
}

export const summary = (lengths: readonly Length[]): string =>
  `${lengths.length}, median ${percentile(lengths, 0.5)}, p95 ${percentile(lengths, 0.95)}, longest ${percentile(lengths, 1)}`
