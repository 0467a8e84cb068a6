import { allNodes, parse } from '../../test/tidy/syntax.ts'
import type { Node } from '../../test/tidy/syntax.ts'
import { sourcesBelow } from '../../test/tidy/tree.ts'
import { FAILURE_CODES } from '../../src/runs/run.ts'
import { page, table } from './markdown.ts'

interface Said {
  readonly code: string
  readonly message?: string | undefined
  readonly remedy?: string | undefined
}

const CODE = /^[a-z][a-z-]*\/[a-z][a-z-]*$/

export function errorsPage(): string {
  const all = errorsInSources()
  const codes = [...new Set(all.map(({ code }) => code))].toSorted()
  const nouns = [...new Set(codes.map((code) => code.split('/')[0]!))]
  return page(
    'Errors',
    'Every error has a code that does not change, a sentence, and what to do about it: `code: sentence; remedy` on the command line, `{ "error": { "code", "message", "remedy"?, "retry"? } }` in JSON. Where the\nwords depend on the case there is a `…`. What a run failed with is [at the end](#runs-that-failed).',
    ...nouns.flatMap((noun) => [
      `## ${noun}`,
      nounTable(
        codes.filter((code) => code.startsWith(`${noun}/`)),
        all,
      ),
    ]),
    '## Runs that failed',
    'The `code` of a run whose state is `failed`: a closed list, because scripts and breakers decide on it.',
    table(
      ['code', 'means'],
      Object.entries(FAILURE_CODES).map(([code, means]) => [`\`${code}\``, means]),
    ),
  )
}

/** What is said in several places is here once; of many ways to say it, the first three. */
function nounTable(codes: readonly string[], all: readonly Said[]): string {
  const distinct = (texts: readonly (string | undefined)[]) =>
    [...new Set(texts.filter((text) => text !== undefined && /[a-z]/.test(text)))].slice(0, 3).join('<br>')
  const rows = codes.map((code) => {
    const said = all.filter((each) => each.code === code)
    return [`\`${code}\``, distinct(said.map(({ message }) => message)), distinct(said.map(({ remedy }) => remedy))]
  })
  return table(['code', 'says', 'do'], rows)
}

/** The forms in which an error is written: made on the spot, or as a row of a table of them. */
export function errorsInSources(): Said[] {
  const files = sourcesBelow('src').filter(({ path }) => !path.endsWith('.test.ts') && !path.startsWith('src/testing/'))
  return files.flatMap((file) => {
    const tree = parse(file)
    return [
      ...allNodes(tree, 'NewExpression').flatMap(made),
      ...allNodes(tree, 'ArrayExpression').flatMap(tupled),
      ...allNodes(tree, 'ObjectExpression').flatMap(listed),
    ]
  })
}

function made(node: Node): Said[] {
  const [first, second, third] = node['arguments'] as readonly (Node | undefined)[]
  const code = textOf(first)
  if (!nameOf(node['callee']).endsWith('Error') || code === undefined || !CODE.test(code)) return []
  return [{ code, message: textOf(second), remedy: textOf(propertyOf(third, 'remedy')) }]
}

function tupled(node: Node): Said[] {
  const [code, message, remedy, ...more] = (node['elements'] as readonly (Node | null)[]).map((each) =>
    textOf(each ?? undefined),
  )
  if (code === undefined || !CODE.test(code) || message === undefined || remedy === undefined || more.length > 0)
    return []
  return [{ code, message, remedy }]
}

function listed(node: Node): Said[] {
  const code = textOf(propertyOf(node, 'code'))
  const says = textOf(propertyOf(node, 'says'))
  if (code !== undefined && CODE.test(code) && says !== undefined)
    return [{ code, message: says, remedy: textOf(propertyOf(node, 'remedy')) }]
  const properties = (node['properties'] as readonly Node[]).filter(({ type }) => type === 'Property')
  return properties.flatMap((each) => {
    const [key, remedy] = [textOf(each['key'] as Node), textOf(each['value'] as Node)]
    return key !== undefined && CODE.test(key) && remedy !== undefined ? [{ code: key, remedy }] : []
  })
}

const nameOf = (node: unknown) => (node as { readonly name?: string } | undefined)?.name ?? ''

function propertyOf(node: Node | undefined, name: string): Node | undefined {
  if (node?.type !== 'ObjectExpression') return undefined
  const found = (node['properties'] as readonly Node[]).find(
    (each) => each.type === 'Property' && nameOf(each['key']) === name,
  )
  return found?.['value'] as Node | undefined
}

/** What is put in is not known here. */
function textOf(node: Node | undefined): string | undefined {
  if (node === undefined) return undefined
  if (typeof node['value'] === 'string') return inOneLine(node['value'])
  if (node.type === 'ConditionalExpression')
    return textOf(node['consequent'] as Node) ?? textOf(node['alternate'] as Node)
  if (node.type !== 'TemplateLiteral') return undefined
  const pieces = node['quasis'] as readonly { readonly value: { readonly cooked: string } }[]
  return inOneLine(pieces.map((piece) => piece.value.cooked).join('…'))
}

/** No text of ours may become markup of the page; between backticks nothing does. */
const inOneLine = (text: string) =>
  text
    .replaceAll(/\s+/g, ' ')
    .trim()
    .split('`')
    .map((part, index) =>
      index % 2 === 1 ? part : part.replaceAll(/[<>*\\[\]]/g, (sign) => ESCAPED[sign] ?? `\\${sign}`),
    )
    .join('`')

const ESCAPED: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;' }
