/** What stands in the input line of a command-line agent. */
export type PromptLine = { readonly kind: 'empty' } | { readonly kind: 'typed'; readonly text: string }

// The input line of Claude Code, Codex and Gemini, with or without a box around it.
const PROMPT = /^\s*[│┃|]?\s*[>❯›](?:\s(?<typed>.*?))?\s*[│┃|]?\s*$/u
// What may stand below a line that is the only one of the input: nothing, or the edge of the box.
const EDGE = /^[\s─━═╰╯└┘╴╶│┃|▀▔_-]*$/u

/**
 * Reads the last input line of a screen that was captured with its colours. Undefined if there is none, or if it goes on in
 * a further line: whoever cannot tell what is there must not type. What a client shows in an empty line (a hint, dimmed) is
 * nothing that was typed, nor is the cell that it draws as its cursor.
 */
export function promptLineOf(screen: string): PromptLine | undefined {
  const lines = screen.replace(/\n+$/, '').split('\n')
  const at = lines.findLastIndex((line) => PROMPT.test(withoutColours(line)))
  if (at === -1 || !EDGE.test(withoutColours(lines[at + 1] ?? ''))) return undefined
  const typed = PROMPT.exec(withoutColours(withoutHints(lines[at] ?? '')))?.groups?.['typed']?.trim() ?? ''
  return typed === '' ? { kind: 'empty' } : { kind: 'typed', text: typed }
}

const ESCAPE = '\u{1b}'
const COLOURS = new RegExp(`${ESCAPE}\\[[0-9;:]*m`, 'gu')
const withoutColours = (line: string) => line.replace(COLOURS, '')

interface Cell {
  readonly text: string
  readonly dim: boolean
  readonly inverse: boolean
}

/** Without what is dimmed, and without a cursor cell that covers a blank or the first letter of a hint. */
function withoutHints(line: string): string {
  const cells = cellsOf(line)
  return cells
    .filter(({ dim, inverse }, index) => !dim && !(inverse && (cells[index + 1]?.dim ?? false)))
    .map(({ text }) => text)
    .join('')
}

/** The line in pieces that look the same. */
function cellsOf(line: string): Cell[] {
  let [dim, inverse] = [false, false]
  return line.split(new RegExp(`(${ESCAPE}\\[[0-9;:]*m)`, 'u')).flatMap((part) => {
    if (!part.startsWith(`${ESCAPE}[`)) return part === '' ? [] : [{ text: part, dim, inverse }]
    for (const code of part.slice(2, -1).split(';')) {
      if (code === '' || code === '0') [dim, inverse] = [false, false]
      if (code === '2') dim = true
      if (code === '22') dim = false
      if (code === '7') inverse = true
      if (code === '27') inverse = false
    }
    return []
  })
}
