import type { Cell } from './row.ts'

/** What stands between text and where it is kept: secrets are sealed on the way in and put back on the way out (src/secrets). */
export interface TextCodec {
  seal(text: string): string
  open(text: string): string
}

/** As they are stored. Most statements have nothing to seal, and then nothing is copied. The same again is not looked at again. */
export function sealed<T>(values: readonly T[], codec: TextCodec | undefined): readonly T[] {
  if (codec === undefined) return values
  let copy: T[] | undefined
  let [last, kept] = ['', '']
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index]!
    if (typeof value !== 'string') continue
    if (value !== last) [last, kept] = [value, codec.seal(value)]
    if (kept !== value) (copy ??= [...values])[index] = kept as T
  }
  return copy ?? values
}

/** As they were written; in place, since the rows are the driver's and nobody else has them. */
export function opened(rows: readonly Record<string, Cell>[], codec: TextCodec | undefined): typeof rows {
  if (codec === undefined) return rows
  for (const row of rows) {
    for (const column in row) {
      const cell = row[column]
      if (typeof cell === 'string' && cell.length > 4) row[column] = codec.open(cell)
    }
  }
  return rows
}
