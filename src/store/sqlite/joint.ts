import { now } from '../sql.ts'
import { GIVEN } from '../transition.ts'
import type { Joint } from '../transition.ts'

const TABLE = GIVEN.strings[0]!

/**
 * A joint statement for so many rows: their values one after the other, and behind them the instant, where it needs one. Rows come
 * in the order in which they are given; what asks for that order elsewhere has to end the `select` here, or `on conflict` would be
 * read as a part of its `from`.
 */
export function renderJoint(joint: Joint, rows: number, isReturning: boolean): string {
  const { columns, many, key, returns = [], table } = joint
  const instant = `?${columns.length * rows + 1}`
  const text = many.strings
    .reduce((before, after, index) => `${before}${many.values[index - 1] === now ? instant : '?'}${after}`)
    .replace(/( where [^]*)?order by place/, (_, condition = 'where true') => condition)
  const returning = [...key, ...returns].map((column) => `${table}.${column}`).join(', ')
  return `${rows === 1 ? ofOne(joint, text) : ofMany(joint, text, rows)}${isReturning ? ` returning ${returning}` : ''}`
}

function ofMany({ columns }: Joint, text: string, rows: number): string {
  const row = `(${columns.map(() => '?').join(', ')})`
  const values = Array.from({ length: rows }, () => row).join(', ')
  return `with given (${columns.map(([name]) => name).join(', ')}) as (values ${values}) ${text.replace(TABLE, 'given')}`
}

/** One row is no table: its values stand where its columns are named. */
function ofOne({ columns }: Joint, text: string): string {
  const names = columns.map(([name]) => name)
  return text
    .replace(`from ${TABLE}, `, 'from ')
    .replace(`from ${TABLE}`, '')
    .replaceAll(/\bgiven\.(\w+)/g, (_, name: string) => `?${names.indexOf(name) + 1}`)
}
