import type { ContainerNode, JsonNode } from '../../base/json-tree.ts'

/** How the owner of a file writes JSON. */
export interface Style {
  /** One level of indentation. */
  readonly unit: string
  readonly newline: string
  /** False for a file that is one line: what is added then stays on it. */
  readonly lines: boolean
}

/** What is put into a container; an entry of an object has a key. */
export interface Piece {
  readonly key?: string
  readonly value: unknown
}

export function styleOf(text: string, root: JsonNode): Style {
  const inside = text.slice(root.start, root.end)
  return {
    unit: /\n([ \t]+)\S/.exec(inside)?.[1] ?? '  ',
    newline: text.includes('\r\n') ? '\r\n' : '\n',
    lines: inside.includes('\n') || isEmpty(root),
  }
}

const isEmpty = (node: JsonNode) => node.kind !== 'scalar' && node.children.length === 0

/** The text with one more piece at the end of a container. */
export function append(text: string, container: ContainerNode, piece: Piece, style: Style): string {
  const last = container.children.at(-1)
  if (last === undefined) return fill(text, container, piece, style)
  // Between the last child and the bracket there may be comments; they stay with that child.
  const gap = text.slice(last.end, container.end - 1)
  const at = last.end + gap.trimEnd().length
  const ownLine = text.slice(container.start, container.children[0]!.start).includes('\n') || gap.includes('\n')
  const indent = indentAt(text, last.start)
  const added = ownLine ? `${style.newline}${indent}${write(piece, indent, style)}` : ` ${writeInline(piece)}`
  return `${text.slice(0, last.end)},${text.slice(last.end, at)}${added}${text.slice(at)}`
}

function fill(text: string, container: ContainerNode, piece: Piece, style: Style): string {
  const comments = text.slice(container.start + 1, container.end - 1).trimEnd()
  const head = text.slice(0, container.start + 1) + comments
  const tail = text.slice(container.end - 1)
  if (!style.lines && comments === '') return `${head}${writeInline(piece)}${tail}`
  const outer = indentAt(text, container.start)
  const indent = outer + style.unit
  return `${head}${style.newline}${indent}${write(piece, indent, style)}${style.newline}${outer}${tail}`
}

/** The text with one value in the place of another. */
export function replaceValue(text: string, node: JsonNode, value: unknown, style: Style): string {
  const oneLine = !text.slice(node.start, node.end).includes('\n')
  const written = oneLine ? writeInline({ value }) : write({ value }, indentAt(text, node.start), style)
  return text.slice(0, node.start) + written + text.slice(node.end)
}

/** The text without one child of a container: the reverse of `append`, wherever the child stands by now. */
export function without(text: string, container: ContainerNode, index: number): string {
  const child = container.children[index]!
  const following = container.commas[index]
  const comma = following ?? container.commas[index - 1]
  const cuts = [{ start: startOfCut(text, child.start, following), end: child.end }]
  if (comma !== undefined) cuts.push({ start: comma, end: comma + 1 })
  const cut = cuts
    .toSorted((a, b) => b.start - a.start)
    .reduce((rest, { start, end }) => remove(rest, start, end), text)
  return container.children.length > 1 ? cut : collapsed(cut, container.start)
}

/** From the end of what stands before, unless that would pull the next one into a comment. */
function startOfCut(text: string, start: number, following: number | undefined): number {
  const from = text.slice(0, start).trimEnd().length
  const sameLine = following !== undefined && !/^[ \t]*\r?\n/.test(text.slice(following + 1))
  return sameLine && text.slice(from, start).includes('\n') ? start : from
}

const remove = (text: string, start: number, end: number) => text.slice(0, start) + text.slice(end)

/** `[` and `]` on two lines with nothing between them become `[]`. */
function collapsed(text: string, start: number): string {
  const inside = /^\s*/.exec(text.slice(start + 1))![0]
  return /^[\]}]/.test(text.slice(start + 1 + inside.length))
    ? remove(text, start + 1, start + 1 + inside.length)
    : text
}

function indentAt(text: string, offset: number): string {
  const line = text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset)
  return /^[ \t]*/.exec(line)![0]
}

function write({ key, value }: Piece, indent: string, { unit, newline }: Style): string {
  const lines = JSON.stringify(value, null, unit).split('\n').join(`${newline}${indent}`)
  return key === undefined ? lines : `${JSON.stringify(key)}: ${lines}`
}

const writeInline = ({ key, value }: Piece) =>
  key === undefined ? JSON.stringify(value) : `${JSON.stringify(key)}: ${JSON.stringify(value)}`
