import { HoldfastError } from '../base/errors.ts'

/** What either driver hands over for one cell: `pg` gives 64-bit integers as strings, SQLite as numbers. */
export type Cell = unknown
export type Decoder<T> = (cell: Cell, column: string) => T

/** Rows are parsed once, here at the edge, into types that the rest of the code trusts. */
export interface Row<T> {
  decode(record: Record<string, Cell>): T
}

/** One whose columns are known, as the database calls them. */
export interface NamedRow<T> extends Row<T> {
  readonly columns: readonly string[]
}

export type Decoded<R> = R extends Row<infer T> ? T : never

/** Columns are named in camelCase and read from snake_case. */
export function row<Shape extends Record<string, Decoder<unknown>>>(
  shape: Shape,
): NamedRow<{ readonly [K in keyof Shape]: ReturnType<Shape[K]> }> {
  type T = { readonly [K in keyof Shape]: ReturnType<Shape[K]> }
  const columns = Object.keys(shape).map((key) => ({ key, column: snakeCase(key), decode: shape[key]! }))
  return {
    columns: columns.map(({ column }) => column),
    decode(record) {
      const decoded: Record<string, unknown> = {}
      for (const { key, column, decode } of columns) decoded[key] = decode(record[column], column)
      return decoded as T
    },
  }
}

export const text =
  <T extends string = string>(): Decoder<T> =>
  (cell, column) =>
    typeof cell === 'string' ? (cell as T) : unreadable(column, cell, 'text')

export const integer: Decoder<number> = (cell, column) => {
  const value = typeof cell === 'string' || typeof cell === 'bigint' ? Number(cell) : cell
  return Number.isSafeInteger(value) ? (value as number) : unreadable(column, cell, 'an integer')
}

export const flag: Decoder<boolean> = (cell, column) => integer(cell, column) !== 0

export const json =
  <T>(): Decoder<T> =>
  (cell, column) => {
    if (typeof cell !== 'string') return unreadable(column, cell, 'JSON text')
    return JSON.parse(cell) as T
  }

export const oneOf =
  <const Words extends readonly string[]>(words: Words): Decoder<Words[number]> =>
  (cell, column) =>
    words.includes(cell as string) ? (cell as Words[number]) : unreadable(column, cell, words.join(' | '))

export const nullable =
  <T>(decode: Decoder<T>): Decoder<T | null> =>
  (cell, column) =>
    cell === null || cell === undefined ? null : decode(cell, column)

function snakeCase(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function unreadable(column: string, cell: Cell, wanted: string): never {
  throw new HoldfastError('store/unreadable', `column ${column} holds ${JSON.stringify(cell)}, expected ${wanted}`, {
    remedy: 'run `holdfast doctor`: the database may be damaged or written by another version',
  })
}
