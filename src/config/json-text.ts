/*
 * JSON that remembers where things are, so that an error can name the line. The runtime's own parser does not tell
 * positions, not even of every syntax error, and takes a key that is there twice without a word.
 */

export interface JsonText {
  readonly value: unknown
  /** Where the key at this path is (or the entry of a list, or the whole), as an offset into the text. */
  readonly offsets: ReadonlyMap<string, number>
}

export type Path = readonly (string | number)[]

export const pathKey = (path: Path): string => JSON.stringify(path)

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

export function parseJsonText(text: string): JsonText {
  const reader = new Reader(text)
  const value = reader.value([])
  reader.end()
  return { value, offsets: reader.offsets }
}

const STRING = /"(?:[^"\\\r\n]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WORD = /true|false|null/y
const BLANK = /[ \t\r\n]*/y
// A comment and a trailing comma are what people write who think of TypeScript.
const COMMENT = /\/[/*]/y
// Deeper than any configuration, and long before the stack ends.
const DEEPEST = 100

class Reader {
  readonly offsets = new Map<string, number>()
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
    // A byte order mark, as some editors leave one.
    if (text.startsWith('\uFEFF')) this.#at = 1
  }

  value(path: Path): unknown {
    this.#skipBlank()
    if (!this.offsets.has(pathKey(path))) this.offsets.set(pathKey(path), this.#at)
    if (path.length > DEEPEST) throw this.#error('this is nested too deeply')
    if (this.#take('{')) return this.#object(path)
    if (this.#take('[')) return this.#list(path)
    const token = this.#match(STRING) ?? this.#match(NUMBER) ?? this.#match(WORD)
    if (token === undefined) throw this.#error(this.#peek('"') ? 'this text is not closed' : 'a value is missing here')
    return this.#decode(token)
  }

  /** Only a text with a tab or another control character in it gets here and is not JSON. */
  #decode(token: string): unknown {
    try {
      return JSON.parse(token)
    } catch {
      throw new JsonSyntaxError(
        'a control character in a text must be written as \\t or \\u0000',
        this.#at - token.length,
      )
    }
  }

  end(): void {
    this.#skipBlank()
    if (this.#at < this.#text.length) throw this.#error('nothing may follow here')
  }

  #object(path: Path): unknown {
    const entries = new Map<string, unknown>()
    if (this.#take('}')) return {}
    do {
      const key = this.#key(path, entries)
      entries.set(key, this.value([...path, key]))
    } while (this.#more('}'))
    // Not by assignment: a key `__proto__` is a key like any other.
    return Object.fromEntries(entries)
  }

  #key(path: Path, entries: ReadonlyMap<string, unknown>): string {
    this.#skipBlank()
    const start = this.#at
    const token = this.#match(STRING)
    if (token === undefined)
      throw this.#error(this.#peek('}') ? 'the comma before is one too many' : 'a key in double quotes is missing here')
    const key = this.#decode(token) as string
    if (entries.has(key)) throw new JsonSyntaxError(`the key "${key}" is here a second time`, start)
    if (!this.#take(':')) throw this.#error(`a colon is missing after "${key}"`)
    this.offsets.set(pathKey([...path, key]), start)
    return key
  }

  #list(path: Path): unknown[] {
    const list: unknown[] = []
    if (this.#take(']')) return list
    do {
      this.#skipBlank()
      if (this.#peek(']')) throw this.#error('the comma before is one too many')
      list.push(this.value([...path, list.length]))
    } while (this.#more(']'))
    return list
  }

  #more(close: string): boolean {
    if (this.#take(close)) return false
    if (this.#take(',')) return true
    throw this.#error(`a comma or "${close}" is missing here`)
  }

  #take(character: string): boolean {
    this.#skipBlank()
    const there = this.#peek(character)
    if (there) this.#at += 1
    return there
  }

  readonly #peek = (character: string) => this.#text[this.#at] === character

  #skipBlank(): void {
    this.#match(BLANK)
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    this.#at += found?.length ?? 0
    return found
  }

  #error(what: string): JsonSyntaxError {
    const start = this.#at
    if (this.#match(COMMENT) !== undefined) return new JsonSyntaxError('JSON has no comments', start)
    return new JsonSyntaxError(start >= this.#text.length ? `the text ends too early: ${what}` : what, start)
  }
}
