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

interface Words {
  readonly says?: string
  readonly do?: string
}

/** Where the words are put together elsewhere, or come from elsewhere: what they say then, and what to do. */
export const IN_OTHER_WORDS: Readonly<Record<string, Words>> = {
  'approvals/too-late': { says: '… has expired, or has been decided already: …, by …' },
  'doubts/not-in-doubt': { says: '… is not in doubt any more: …; or it is gone' },
  'internal/invariant': { says: 'what cannot be, and is: …' },
  'internal/unexpected': { says: 'what nobody thought of: …', do: 'please report this, with what `--stack` prints' },
  'model/auth': { says: 'the provider answered 401 or 403: …; or there is no key' },
  'model/bad-request': { says: 'the provider answered 400, 404 or the like: …' },
  'model/rate-limit': { says: 'the provider answered 429: …' },
  'store/damaged': { says: 'what the database says of its damage: …' },
  'store/postgres': { says: 'what the server says: … (with its SQLSTATE)' },
  'tool/not-done': {
    says: 'what a tool says with `notDone`: …',
    do: 'as it says; the call did not happen, and the model is told so',
  },
  'tools/cannot-start': { do: 'mend what it names; nothing was begun' },
  'usage/arguments': { says: 'what is wrong with the arguments: …' },
  'usage/workspace': {
    says: 'what is wrong with `--workspace`, or with a flag that belongs to it: …',
    do: 'as the sentence ends: `holdfast help run` has them',
  },
  'workspace/refused': { says: 'why it cannot be done with this workspace: …' },
}

interface Row {
  readonly code: string
  readonly says: string
  readonly do: string
}

/** One for each code. What is said in several places is here once; of many ways to say it, the first three. */
export function errorRows(others: Readonly<Record<string, Words>> = IN_OTHER_WORDS): Row[] {
  const all = errorsInSources()
  const codes = [...new Set([...all.map(({ code }) => code), ...Object.keys(others)])].toSorted()
  return codes.map((code) => {
    const said = all.filter((each) => each.code === code)
    const other = others[code]
    return {
      code,
      says: distinct(said.map(({ message }) => message)) || (other?.says ?? ''),
      do: distinct(said.map(({ remedy }) => remedy)) || (other?.do ?? ''),
    }
  })
}

const distinct = (texts: readonly (string | undefined)[]) =>
  [...new Set(texts.filter((text) => text !== undefined && isSentence(text)))].slice(0, 3).join('<br>')

/** Words, and not a path or a blank that is filled in elsewhere. */
const isSentence = (text: string) => /[a-z]/.test(text) && text.includes(' ')

export function errorsPage(): string {
  const rows = errorRows()
  const nouns = [...new Set(rows.map(({ code }) => code.split('/')[0]!))]
  return page(
    'Errors',
    'Every error has a code that does not change, a sentence, and what to do about it: `code: sentence; remedy` on the command line, `{ "error": { "code", "message", "remedy"?, "retry"? } }` in JSON. Where the\nwords depend on the case there is a `…`. What a run failed with is [at the end](#runs-that-failed).',
    ...nouns.flatMap((noun) => [
      `## ${noun}`,
      table(
        ['code', 'says', 'do'],
        rows.filter(({ code }) => code.startsWith(`${noun}/`)).map((row) => [`\`${row.code}\``, row.says, row.do]),
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

/** The forms in which an error is written: made on the spot, or as a row of a table of them. */
export function errorsInSources(): Said[] {
  const files = sourcesBelow('src').filter(({ path }) => !path.endsWith('.test.ts') && !path.startsWith('src/testing/'))
  return files.flatMap((file) => {
    const tree = parse(file)
    return [
      ...allNodes(tree, 'NewExpression').flatMap((node) => made(node, tree)),
      ...allNodes(tree, 'ArrayExpression').flatMap(tupled),
      ...allNodes(tree, 'ObjectExpression').flatMap(listed),
    ]
  })
}

function made(node: Node, tree: Node): Said[] {
  const [first, second, third] = node['arguments'] as readonly (Node | undefined)[]
  const code = textOf(first)
  if (!nameOf(node['callee']).endsWith('Error') || code === undefined || !CODE.test(code)) return []
  return [{ code, message: textOf(second), remedy: textOf(declared(propertyOf(third, 'remedy'), tree)) }]
}

/** What a name that stands for it was given, last before it was used. */
function declared(node: Node | undefined, tree: Node): Node | undefined {
  if (node?.type !== 'Identifier') return node
  const given = allNodes(tree, 'VariableDeclarator').filter((each) => nameOf(each['id']) === nameOf(node))
  return given.findLast(({ end }) => end < node.start)?.['init'] as Node | undefined
}

function tupled(node: Node): Said[] {
  const [code, message, remedy, ...more] = (node['elements'] as readonly (Node | null)[]).map((each) =>
    textOf(each ?? undefined),
  )
  if (code === undefined || !CODE.test(code) || message === undefined || remedy === undefined || more.length > 0)
    return []
  if (!isSentence(message) || !isSentence(remedy)) return []
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
    return key !== undefined && CODE.test(key) && remedy !== undefined && isSentence(remedy)
      ? [{ code: key, remedy }]
      : []
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
