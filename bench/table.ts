import { shown } from '../scripts/docs/numbers.ts'
import { holds } from './bench.ts'
import type { Bound, Row } from './bench.ts'

export function boundOf({ of, most, least }: Bound): string {
  const words = most === undefined ? `at least ${shown(least ?? 0)}` : `at most ${shown(most)}`
  return of === 'ratio' ? `${words} times` : words
}

export interface Measured {
  readonly bench: string
  readonly rows: readonly Row[]
  readonly error?: string
}

/** The one table: what was measured, what the limit was, the ratio, and whether it is within its bound. */
export function printTable(all: readonly Measured[]): void {
  const lines = all.flatMap(({ bench, rows, error }) => [
    ...rows.map((row) => cells(bench, row)),
    ...(error === undefined ? [] : [[bench, `failed: ${error}`, '', '', '', '', '', '', '✗']]),
  ])
  const heads = ['bench', 'what', 'measured', 'unit', 'statements', 'raw', 'ratio', 'bound', '']
  const widths = heads.map((head, index) => Math.max(head.length, ...lines.map((line) => line[index]!.length)))
  const isNumber = (index: number) => [2, 4, 5, 6].includes(index)
  const line = (parts: readonly string[]) =>
    parts
      .map((part, index) => (isNumber(index) ? part.padStart(widths[index]!) : part.padEnd(widths[index]!)))
      .join('  ')
      .trimEnd()
  console.log([line(heads), line(widths.map((width) => '─'.repeat(width))), ...lines.map(line)].join('\n'))
}

function cells(bench: string, row: Row): string[] {
  const { name, value, unit, statements, raw, ratio, bound } = row
  const optional = (number: number | undefined) => (number === undefined ? '' : shown(number))
  const verdict = bound === undefined ? '' : holds(row) ? '✓' : '✗'
  return [
    bench,
    name,
    shown(value),
    unit,
    optional(statements),
    optional(raw),
    optional(ratio),
    bound === undefined ? '' : boundOf(bound),
    verdict,
  ]
}
