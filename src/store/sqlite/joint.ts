import { now } from '../sql.ts'
import { GIVEN } from '../transition.ts'
import type { Joint } from '../transition.ts'

/**
 * A joint statement for so many rows: their values one after the other, and behind them the instant, where it needs one. Rows come
 * in the order in which they are given; what asks for that order elsewhere has to end the `select` here, or `on conflict` would be
 * read as a part of its `from`.
 */
export function renderJoint(joint: Joint, rows: number, isReturning: boolean): string {
  const { columns, many, key, returns = [], table } = joint
  const row = `(${columns.map(() => '?').join(', ')})`
  const instant = `?${columns.length * rows + 1}`
  const text = many.strings
    .reduce((before, after, index) => `${before}${many.values[index - 1] === now ? instant : '?'}${after}`)
    .replace(GIVEN.strings[0]!, 'given')
    .replace('order by place', 'where true')
  const given = `given (${columns.map(([name]) => name).join(', ')}) as (values ${Array.from({ length: rows }, () => row).join(', ')})`
  const returning = [...key, ...returns].map((column) => `${table}.${column}`).join(', ')
  return `with ${given} ${text}${isReturning ? ` returning ${returning}` : ''}`
}
