import { now } from '../sql.ts'
import type { Sql, SqlValue } from '../sql.ts'

/** One request on the wire. A name makes the server keep the parsed statement for this connection. */
export interface Request {
  readonly text: string
  readonly values?: readonly Exclude<SqlValue, typeof now>[]
  readonly name?: string
}

/** Statements built from varying fragments are not worth keeping beyond this many. */
const MOST_NAMED = 500

/** Turns our statements into PostgreSQL's: `$1`, its own clock, its own way to pass over locked rows. */
export class Renderer {
  readonly #named: boolean
  readonly #byTemplate = new WeakMap<readonly string[], { readonly text: string; readonly clockAt: string }>()
  readonly #names = new Map<string, string>()

  /** Behind a pooler in transaction mode a name would be kept in somebody else's session. */
  constructor(options: { readonly named: boolean }) {
    this.#named = options.named
  }

  request(statement: Sql): Request {
    const text = this.#text(statement)
    const values = statement.values.filter((value) => value !== now).map(withoutNul)
    const name = this.#named ? this.#name(text) : undefined
    return name === undefined ? { text, values } : { text, values, name }
  }

  /** A request of the engine's own, without its name where names cannot be kept. */
  own({ name, ...request }: Request): Request {
    return this.#named && name !== undefined ? { ...request, name } : request
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
  return text.replace('/* skip locked */', 'for update skip locked')
}
