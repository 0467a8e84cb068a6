import { opened, sealed } from '../codec.ts'
import type { TextCodec } from '../codec.ts'
import { now } from '../sql.ts'
import type { Sql, SqlValue } from '../sql.ts'
import { GIVEN } from '../transition.ts'
import type { Answer, Given, Joint } from '../transition.ts'

/** One request on the wire. A name makes the server keep the parsed statement for this connection. */
export interface Request {
  readonly text: string
  readonly values?: readonly (Exclude<SqlValue, typeof now> | readonly (string | number | null)[])[]
  readonly name?: string
}

/** A statement around another one, and around two values of its own. */
export interface Closing {
  text(inner: string, first: string, second: string): string
}

/** Statements built from varying fragments are not worth keeping beyond this many. */
const MOST_NAMED = 500

/** Turns our statements into PostgreSQL's: `$1`, its own clock, its own way to pass over locked rows. */
export class Renderer {
  readonly #named: boolean
  readonly #codec: TextCodec | undefined
  readonly #byTemplate = new WeakMap<readonly string[], { readonly text: string; readonly clockAt: string }>()
  readonly #names = new Map<string, string>()
  readonly #manyTexts = new WeakMap<Joint, string>()
  readonly #closings = new WeakMap<Joint, string>()

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

  /** A joint statement for many rows: a column is one value, an array. */
  many(joint: Joint, given: readonly Given[]): Request {
    return this.own({ text: this.#manyText(joint), values: this.#arrays(joint, given), name: '' })
  }

  /**
   * The end of a transaction in one statement: `order` before any of the rows is numbered, the rows, and whatever `around` has
   * besides, whose values are the last two.
   */
  closing(joint: Joint, given: readonly Given[], around: Closing, values: readonly [string, number]): Request {
    let text = this.#closings.get(joint)
    if (text === undefined) {
      const told = this.#manyText(joint).replace(' from unnest(', ' from ordered, unnest(')
      const first = joint.columns.length + 1
      text = around.text(told, `$${first}`, `$${first + 1}`)
      this.#closings.set(joint, text)
    }
    return this.own({ text, values: [...this.#arrays(joint, given), ...values], name: '' })
  }

  #arrays(joint: Joint, given: readonly Given[]) {
    return joint.columns.map((_, column) =>
      sealed(
        given.map(({ values: row }) => withoutNul(row[column] ?? null)),
        this.#codec,
      ),
    )
  }

  #manyText(joint: Joint): string {
    const known = this.#manyTexts.get(joint)
    if (known !== undefined) return known
    const arrays = joint.columns.map(([, type], index) => `$${index + 1}::${type}[]`).join(', ')
    const names = [...joint.columns.map(([name]) => name), 'place'].join(', ')
    const text = render(joint.many).replace(GIVEN.strings[0]!, `unnest(${arrays}) with ordinality as given (${names})`)
    this.#manyTexts.set(joint, text)
    return text
  }
  /** What came back, as it was written; to be asked once, since what it puts back may look like something to put back. */
  opened<A extends Pick<Answer, 'rows'>>(answers: readonly A[]): readonly A[] {
    for (const { rows } of answers) opened(rows, this.#codec)
    return answers
  }

  /** A request without its name where names cannot be kept; an empty one is made up. */
  own({ name, ...request }: Request): Request {
    if (!this.#named || name === undefined) return request
    const kept = name === '' ? this.#name(request.text) : name
    return kept === undefined ? request : { ...request, name: kept }
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

/**
 * Text here cannot hold a NUL, and what tools and models say can: a complaint in bytes must not make a settlement fail
 * for ever. The same everywhere, so what is looked up by such a text is found.
 */
const withoutNul = <T>(value: T): T =>
  typeof value === 'string' && value.includes('\0') ? (value.replaceAll('\0', '\ufffd') as T) : value

function render({ strings, values }: Sql): string {
  let parameter = 0
  const text = strings.reduce((before, after, index) => {
    const place = values[index - 1] === now ? 'now_ms()' : `$${++parameter}`
    return `${before}${place}${after}`
  })
  return text
    .replace('/* skip locked */', 'for update skip locked')
    .replace(' json_each(', ' json_array_elements_text(')
}
