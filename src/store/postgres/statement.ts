import { opened, sealed } from '../codec.ts'
import { invariant } from '../../base/errors.ts'
import type { TextCodec } from '../codec.ts'
import { held, kept, now, skipLocked, storedIn, unchanged } from '../sql.ts'
import type { Sql, SqlValue } from '../sql.ts'
import { GIVEN } from '../transition.ts'
import type { Answer, Joint, Values } from '../transition.ts'

/** More than there are. */
const MOST_JOINTS = 1_000_000

/** One request on the wire. A name makes the server keep the parsed statement for this connection. */
export interface Request {
  readonly text: string
  readonly values?: readonly (Exclude<SqlValue, typeof now> | readonly (string | number | null)[])[]
  readonly name?: string
}

/** A joint statement, and the rows that it is given. */
export interface Asked {
  readonly joint: Joint
  readonly rows: Values
}

/** What a transaction ends with: what has to be true, the statement that has its events, and two values. */
export type Closing = (parts: {
  /** A `select` of one row with `yes`; where what was likely is not so, it has no row or divides by zero. */
  readonly checked: string
  readonly told: string | undefined
  /** What is returned, as columns. */
  readonly late: readonly string[]
  readonly lane: string
  readonly batch: string
}) => string

/** Statements built from varying fragments are not worth keeping beyond this many. */
const MOST_NAMED = 500

/** Turns our statements into PostgreSQL's: `$1`, its own clock, its own way to pass over locked rows. */
export class Renderer {
  readonly #named: boolean
  readonly #codec: TextCodec | undefined
  readonly #byTemplate = new WeakMap<readonly string[], { readonly text: string; readonly clockAt: string }>()
  readonly #names = new Map<string, string>()
  readonly #jointTexts = new WeakMap<Joint, string>()
  readonly #checkedTexts = new WeakMap<Joint, string>()
  /** By the numbers of the joints in them. */
  readonly #closings = new Map<string, string>()
  readonly #jointNumbers = new WeakMap<Joint, number>()
  readonly #places = new WeakMap<Joint, number>()
  #joints = 0

  /** Behind a pooler in transaction mode a name would be kept in somebody else's session. */
  constructor(options: { readonly named: boolean; readonly codec?: TextCodec | undefined }) {
    this.#named = options.named
    this.#codec = options.codec
  }

  request(statement: Sql): Request {
    const text = this.#text(statement)
    const values = sealed(statement.values.filter((value) => value !== now).map(withoutNul), this.#codec)
    const name = this.#named ? this.#name(text) : undefined
    return name === undefined ? { text, values } : { text, values, name }
  }

  /** A joint statement: a column is one value, an array. */
  joint({ joint, rows }: Asked): Request {
    let text = this.#jointTexts.get(joint)
    if (text === undefined) this.#jointTexts.set(joint, (text = withAnswers(joint)))
    return this.own({ text, values: this.#arrays(joint, rows), name: '' })
  }

  /** The same for a likely one, which fails unless it changed every row. */
  checked({ joint, rows }: Asked): Request {
    let text = this.#checkedTexts.get(joint)
    if (text === undefined) this.#checkedTexts.set(joint, (text = checkedText(joint)))
    return this.own({ text, values: this.#arrays(joint, rows), name: '' })
  }

  /** What a joint statement has returned, looked up by its key. */
  stored({ joint, rows }: Asked): Request {
    const { table, key, returns = [], columns } = joint
    invariant(key.length === 1, 'what returns something is known by one column')
    const text = `select ${[...key, ...returns].join(', ')} from ${table} where ${key[0]} = any($1)`
    const place = columns.findIndex(([name]) => name === key[0])
    return { text, values: [columnOf(columns.length, rows, place)] }
  }

  /** Everything that is left of a transaction in one statement: what is likely, the events, and what goes around them. */
  closing(
    likely: readonly Asked[],
    told: Asked | undefined,
    around: Closing,
    values: readonly [string, number],
  ): Request {
    for (const { joint } of likely) this.#numberOf(joint)
    const groups = likely.toSorted((a, b) => this.#placeOf(a.joint) - this.#placeOf(b.joint))
    const likelyAs = groups.every((asked) => countOf(asked) === 1) ? 1 : 'arrays'
    const toldAs = told === undefined || countOf(told) > MOST_AS_ROWS ? 'arrays' : countOf(told)
    const all = told === undefined ? groups : [...groups, told]
    const id = `${likelyAs} ${toldAs} ${groups.length}:${all.map(({ joint }) => this.#numberOf(joint)).join()}`
    let text = this.#closings.get(id)
    if (text === undefined) this.#closings.set(id, (text = closingText(groups, told, around, { likelyAs, toldAs })))
    const given = groups.flatMap((asked) => this.#given(asked, likelyAs))
    const events = told === undefined ? [] : this.#given(told, toldAs)
    return this.own({ text, values: [...given, ...events, ...values], name: '' })
  }

  #given({ joint, rows }: Asked, manner: Manner) {
    return manner === 'arrays' ? this.#arrays(joint, rows) : this.#rows(joint, rows)
  }

  /** The same for the same joints. First what the others may look at; then who relies on a row, which another of them may change. */
  #placeOf(joint: Joint): number {
    let place = this.#places.get(joint)
    if (place === undefined) this.#places.set(joint, (place = placed(joint, this.#numberOf(joint))))
    return place
  }

  #numberOf(joint: Joint): number {
    let number = this.#jointNumbers.get(joint)
    if (number === undefined) this.#jointNumbers.set(joint, (number = ++this.#joints))
    return number
  }

  #arrays({ columns }: Joint, rows: Values) {
    return columns.map(([, type], column) => {
      const values = columnOf(columns.length, rows, column)
      return type === 'text' ? sealed(values.map(withoutNul), this.#codec) : values
    })
  }

  #rows({ columns }: Joint, rows: Values) {
    return rows.map((value, place) => {
      if (columns[place % columns.length]![1] !== 'text' || typeof value !== 'string') return value
      return this.#codec === undefined ? withoutNul(value) : this.#codec.seal(withoutNul(value))
    })
  }

  /** What came back, as it was written; to be asked once, since what it puts back may look like something to put back. */
  opened<A extends Pick<Answer, 'rows'>>(answers: readonly A[]): readonly A[] {
    for (const { rows } of answers) opened(rows, this.#codec)
    return answers
  }

  /** A request without its name where names cannot be kept; an empty one is made up. */
  own({ name, ...request }: Request): Request {
    if (!this.#named || name === undefined) return request
    const known = name === '' ? this.#name(request.text) : name
    return known === undefined ? request : { ...request, name: known }
  }

  #text(statement: Sql): string {
    const clockAt = statement.values.map((value) => (value === now ? 'c' : 'v')).join('')
    const known = this.#byTemplate.get(statement.strings)
    if (known?.clockAt === clockAt) return known.text
    const text = render(statement)
    this.#byTemplate.set(statement.strings, { text, clockAt })
    return text
  }

  #name(text: string): string | undefined {
    const known = this.#names.get(text)
    if (known !== undefined || this.#names.size >= MOST_NAMED) return known
    const name = `holdfast_${this.#names.size + 1}`
    this.#names.set(text, name)
    return name
  }
}

/** Of rows that are so wide. */
function columnOf(width: number, rows: Values, column: number): Values {
  const values: Values = []
  for (let place = column; place < rows.length; place += width) values.push(rows[place]!)
  return values
}

/**
 * Text here cannot hold a NUL, and what tools and models say can: a complaint in bytes must not make a settlement fail
 * for ever. The same everywhere, so what is looked up by such a text is found.
 */
const withoutNul = <T>(value: T): T =>
  typeof value === 'string' && value.includes('\0') ? (value.replaceAll('\0', '\ufffd') as T) : value

function placed({ returns, many }: Joint, number: number): number {
  if (returns !== undefined) return number - 2 * MOST_JOINTS
  return many.strings.some((part) => part.includes(unchanged.strings[0]!)) ? number - MOST_JOINTS : number
}

/** How a joint statement is given its rows: each column as an array, or so many rows as they are. */
type Manner = 'arrays' | number

/** An event or two come with most commits of a caller who is alone. */
const MOST_AS_ROWS = 3

/** A joint statement whose values are the parameters after the first so many. */
function jointText({ columns, many }: Joint, after: number, manner: Manner = 'arrays'): string {
  const typed = columns.map(([name, type]) => [name, type === 'word' ? 'text' : type] as const)
  const given =
    manner === 'arrays' ? arraysOf(typed, after) : manner === 1 ? rowOf(typed, after) : rowsOf(typed, after, manner)
  return render(many).replace(GIVEN.strings[0]!, given)
}

type Columns = readonly (readonly [name: string, type: string])[]

const named = (columns: Columns) => `as given (${[...columns.map(([name]) => name), 'place'].join(', ')})`

const arraysOf = (columns: Columns, after: number) =>
  `unnest(${columns.map(([, type], index) => `$${after + index + 1}::${type}[]`).join(', ')}) with ordinality ${named(columns)}`

/** By arrays a server makes a table of one row, sorts it and joins it: a quarter of its work for a call that is alone. */
const rowOf = (columns: Columns, after: number) =>
  `(select ${columns.map(([name, type], index) => `$${after + index + 1}::${type} as ${name}`).join(', ')}, 1 as place) as given`

const rowsOf = (columns: Columns, after: number, count: number) => {
  const row = (place: number) =>
    columns.map(([, type], index) => `$${after + place * columns.length + index + 1}::${type}`).join(', ')
  return `(values ${Array.from({ length: count }, (_, place) => `(${row(place)}, ${place + 1})`).join(', ')}) ${named(columns)}`
}

function withAnswers(joint: Joint): string {
  return joint.key.length === 0 ? jointText(joint, 0) : `${jointText(joint, 0)} ${returning(joint)}`
}

const returning = ({ key, returns = [], table }: Joint): string =>
  `returning ${[...key, ...returns].map((column) => `${table}.${column}`).join(', ')}`

/** Where it returns something, that too; a row at least, or nothing would be checked. */
function checkedText(joint: Joint): string {
  const check = checkOf('likely', 1)
  if (joint.returns === undefined) return `with likely as (${changing(joint, 0)}) select ${check}`
  return `with likely as (${changing(joint, 0)}) select likely.*, ${check} as checked from (values (1)) as one left join likely on true`
}

/** What is there already is as unlikely: nobody looks before, the index says so (`isUnlikely`). */
const changing = (joint: Joint, after: number, manner?: Manner) =>
  `${jointText(joint, after, manner).replace(/\s+on conflict do nothing$/, '')} ${joint.returns === undefined ? 'returning 1' : returning(joint)}`

/** A division by zero, unless as many rows were changed as the array has. */
const checkOf = (name: string, array: number) => `(1 / ((select count(*) from ${name}) = cardinality($${array}))::int)`

/** The column of a closing that has the rows which it put into a table. */
export const lateOf = (table: string) => `late_${table}`

const countOf = ({ joint, rows }: Asked): number => rows.length / joint.columns.length

function closingText(
  groups: readonly Asked[],
  events: Asked | undefined,
  around: Closing,
  { likelyAs, toldAs }: { readonly likelyAs: Manner; readonly toldAs: Manner },
): string {
  let after = 0
  const place = ({ columns }: Joint) => (after += columns.length) - columns.length
  const parts = groups.map(({ joint }, index) => {
    const from = place(joint)
    const name = `likely${index}`
    return { name, text: `${name} as (${changing(joint, from, likelyAs)}),`, check: checkOf(name, from + 1) }
  })
  const telling = groups.flatMap(({ joint }, index) =>
    joint.returns === undefined ? [] : [{ name: `likely${index}`, table: joint.table }],
  )
  invariant(
    new Set(telling.map(({ table }) => table)).size === telling.length,
    'one for each table tells what it stored',
  )
  const late = telling.map(({ name, table }) => `(select json_agg(${name}) from ${name}) as ${lateOf(table)}`)
  // What is stored here is not in its table before all of this is over.
  const likely = telling.reduce(
    (text, { name, table }) => text.replaceAll(storedIn(table).strings[0]!, name),
    parts.map(({ text }) => text).join('\n    '),
  )
  const told =
    events && jointText(events.joint, after, toldAs).replace(/ from (?=unnest\(|\((select|values) )/, ' from ordered, ')
  if (events !== undefined) after += events.joint.columns.length * (toldAs === 'arrays' ? 1 : toldAs)
  const [lane, batch] = [`$${after + 1}`, `$${after + 2}`]
  const checked =
    likelyAs === 1
      ? `select 1 as yes${parts.length === 0 ? '' : ` from ${parts.map(({ name }) => name).join(', ')}`}`
      : `select ${['1', ...parts.map(({ check }) => check)].join(' * ')} as yes`
  return `with ${likely}${around({ checked, told, late, lane, batch })}`
}

/**
 * Asked once in a statement. By itself the function would be asked again for every row, and could not be compared with an
 * index: to find what is due, all that is not due would be looked at.
 */
const NOW = '(select now_ms())'

function render({ strings, values }: Sql): string {
  let parameter = 0
  const text = strings.reduce((before, after, index) => {
    const place = values[index - 1] === now ? NOW : `$${++parameter}`
    return `${before}${place}${after}`
  })
  return text
    .replace(skipLocked.strings[0]!, 'for update skip locked')
    .replace(held.strings[0]!, 'for no key update')
    .replace(unchanged.strings[0]!, 'for share')
    .replace(kept.strings[0]!, 'for key share')
    .replace(' json_each(', ' json_array_elements_text(')
}
