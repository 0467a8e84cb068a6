import { jsonText, visible, visibleLine } from '../../base/visible.ts'
import { widthOf } from '../../base/width.ts'

export { jsonText, visible, visibleLine }

/** Results go to standard output, everything else to standard error; colour and progress only to a terminal. */
export interface Output {
  readonly json: boolean
  /** One JSON value, or the human form of it. */
  readonly result: (value: unknown, human: () => string) => void
  /** A remark for a person; not part of the result. */
  readonly note: (text: string) => void
}

export function makeOutput(json: boolean): Output {
  return {
    json,
    result(value, human) {
      const text = json ? jsonText(value, 2) : visible(human())
      if (text !== '') process.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
    },
    note: (text) => void process.stderr.write(`holdfast: ${visible(text)}\n`),
  }
}

/** Progress is for eyes: without a terminal nobody watches. */
export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`holdfast: ${visible(text)}\n`)
}

/** Columns as wide as their widest cell; the last one is not padded. `none`: what is said instead, if there are no rows. */
export function table(header: readonly string[], rows: readonly (readonly string[])[], none?: string): string {
  if (rows.length === 0 && none !== undefined) return none
  const lines = [header, ...rows].map((row) => row.map(visibleLine))
  const widths = header.map((_, column) => Math.max(...lines.map((row) => widthOf(row[column] ?? ''))))
  const padded = (cell: string, column: number) => `${cell}${' '.repeat(widths[column]! - widthOf(cell))}`
  return lines.map((row) => row.map(padded).join('  ').trimEnd()).join('\n')
}

export function ago(instant: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - instant) / 1_000))
  if (seconds < 120) return `${seconds}s ago`
  if (seconds < 7_200) return `${Math.round(seconds / 60)}m ago`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)}h ago` : `${Math.round(seconds / 86_400)}d ago`
}
