/*
 * JSON that remembers where everything stands, so that an error can name the line, and so that a settings file can be changed at
 * one place and stay as its owner wrote it everywhere else: order, indentation, line ends, comments where they are allowed. The
 * runtime's own parser does not tell positions, not even of every syntax error, and takes a key that is there twice without a word.
 */

interface Range {
  readonly start: number
  readonly end: number
}

export interface ScalarNode extends Range {
  readonly kind: 'scalar'
  readonly value: unknown
}

export interface ListNode extends Range {
  readonly kind: 'list'
  readonly children: readonly Item[]
  /** Where the comma after each child is; the last child has none. */
  readonly commas: readonly number[]
}

export interface ObjectNode extends Range {
  readonly kind: 'object'
  readonly children: readonly Member[]
  readonly commas: readonly number[]
}

/** What stands between two commas: a value, in an object with its key. */
export interface Item extends Range {
  readonly value: JsonNode
}

export interface Member extends Item {
  readonly key: string
}

export type ContainerNode = ListNode | ObjectNode
export type JsonNode = ScalarNode | ContainerNode

export class JsonSyntaxError extends Error {
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.name = 'JsonSyntaxError'
    this.offset = offset
  }
}

/** Lines and columns count from 1, as editors do. */
export function lineAndColumn(text: string, offset: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, offset).split(/\r\n|\n|\r/)
  return { line: before.length, column: (before.at(-1) ?? '').length + 1 }
}

export function parseTree(text: string, options: { readonly comments: boolean }): JsonNode {
  const reader = new Reader(text, options.comments)
  const root = reader.value(0)
  reader.end()
  return root
}

export const memberOf = (node: JsonNode, key: string): Member | undefined =>
  node.kind === 'object' ? node.children.find((member) => member.key === key) : undefined

export function valueOf(node: JsonNode): unknown {
  if (node.kind === 'scalar') return node.value
  if (node.kind === 'list') return node.children.map((item) => valueOf(item.value))
  // Not by assignment: a key `__proto__` is a key like any other.
  return Object.fromEntries(node.children.map(({ key, value }) => [key, valueOf(value)]))
}

const STRING = /"(?:[^"\\\r\n]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WORD = /true|false|null/y
const BLANK = /[ \t\r\n]*/y
const BLANK_OR_COMMENT = /(?:[ \t\r\n]|\/\/[^\r\n]*|\/\*[^]*?\*\/)*/y
// Deeper than any settings, and long before the stack ends.
const DEEPEST = 100

class Reader {
  readonly #text: string
  readonly #comments: boolean
  #at = 0

  constructor(text: string, comments: boolean) {
    this.#text = text
    this.#comments = comments
    // A byte order mark, as some editors leave one.
    if (text.startsWith('\uFEFF')) this.#at = 1
  }

  value(depth: number): JsonNode {
    this.#skip()
    if (depth > DEEPEST) throw this.#error('this is nested too deeply')
    const start = this.#at
    if (this.#take('{')) return { kind: 'object', start, ...this.#children('}', () => this.#member(depth)) }
    if (this.#take('[')) return { kind: 'list', start, ...this.#children(']', () => this.#item(depth)) }
    const token = this.#match(STRING) ?? this.#match(NUMBER) ?? this.#match(WORD)
    if (token === undefined)
      throw this.#error(this.#text[this.#at] === '"' ? 'this text is not closed' : 'a value is missing here')
    return { kind: 'scalar', start, end: this.#at, value: this.#decode(token, start) }
  }

  end(): void {
    this.#skip()
    if (this.#at < this.#text.length) throw this.#error('nothing may follow here')
  }

  #children<T extends Item>(close: string, read: () => T): { children: T[]; commas: number[]; end: number } {
    const children: T[] = []
    const commas: number[] = []
    const keys = new Set<string>()
    if (this.#take(close)) return { children, commas, end: this.#at }
    for (;;) {
      const child = read()
      if ('key' in child && typeof child.key === 'string') this.#once(child.key, child.start, keys)
      children.push(child)
      if (this.#take(close)) return { children, commas, end: this.#at }
      if (!this.#take(',')) throw this.#error(`a comma or "${close}" is missing here`)
      commas.push(this.#at - 1)
      this.#skip()
      if (this.#text[this.#at] === close) throw this.#error('the comma before is one too many')
    }
  }

  /** Of a key that is there twice a client sees one, and nobody can say which. */
  #once(key: string, start: number, keys: Set<string>): void {
    if (keys.has(key)) throw new JsonSyntaxError(`the key "${key}" is here a second time`, start)
    keys.add(key)
  }

  #member(depth: number): Member {
    this.#skip()
    const start = this.#at
    const token = this.#match(STRING)
    if (token === undefined) throw this.#error('a key in double quotes is missing here')
    const key = this.#decode(token, start) as string
    if (!this.#take(':')) throw this.#error(`a colon is missing after "${key}"`)
    const value = this.value(depth + 1)
    return { key, start, end: value.end, value }
  }

  #item(depth: number): Item {
    const value = this.value(depth + 1)
    return { start: value.start, end: value.end, value }
  }

  #decode(token: string, start: number): unknown {
    try {
      return JSON.parse(token)
    } catch {
      throw new JsonSyntaxError('a control character in a text must be written as \\t or \\u0000', start)
    }
  }

  #take(character: string): boolean {
    this.#skip()
    if (this.#text[this.#at] !== character) return false
    this.#at += 1
    return true
  }

  #skip(): void {
    this.#match(this.#comments ? BLANK_OR_COMMENT : BLANK)
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    this.#at += found?.length ?? 0
    return found
  }

  #error(what: string): JsonSyntaxError {
    const isComment = /^\/[/*]/.test(this.#text.slice(this.#at, this.#at + 2))
    const early = this.#at >= this.#text.length ? `the text ends too early: ${what}` : what
    return new JsonSyntaxError(isComment && !this.#comments ? 'this file may have no comments' : early, this.#at)
  }
}
