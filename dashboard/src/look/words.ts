/** How things are said: times, sizes, money, and what must not hide in a text. */

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** `4 min`, the same length as long as possible. */
export function span(ms: number): string {
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)} s`
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ${Math.floor((ms % MINUTE) / SECOND)} s`
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} min`
  return `${Math.floor(ms / DAY)} d ${Math.floor((ms % DAY) / HOUR)} h`
}

/** One unit only: for times that are gone or to come. */
function rough(ms: number): string {
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`
  return ms < 2 * DAY ? `${Math.floor(ms / HOUR)} h` : `${Math.floor(ms / DAY)} d`
}

export function ago(iso: string, now: number): string {
  const ms = now - Date.parse(iso)
  if (Math.abs(ms) < 5 * SECOND) return 'now'
  return ms > 0 ? `${rough(ms)} ago` : `in ${rough(-ms)}`
}

const exactly = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' })
export const exact = (iso: string): string => `${exactly.format(new Date(iso))} (${iso})`

export function money(usd: number): string {
  if (usd === 0) return '$0'
  return usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`
}

export function count(value: number): string {
  if (value < 1000) return String(value)
  if (value < 1_000_000) return `${(value / 1000).toFixed(value < 10_000 ? 1 : 0)} k`
  return `${(value / 1_000_000).toFixed(1)} M`
}

export const many = (value: number, one: string, more = `${one}s`): string => `${value} ${value === 1 ? one : more}`

/**
 * What would hide or steer: control and direction marks, whatever takes no room; and five line ends in a row and more, which
 * push something out of sight.
 */
const UNSEEN =
  /\n(?:[ \t]*\n){4,}|[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]--[\u{fe0e}-\u{fe0f}\n\t]]/v

const mark = (found: string) =>
  found.startsWith('\n') ? `\n\\n × ${found.split('\n').length - 2}\n` : `\\u{${found.codePointAt(0)?.toString(16)}}`

const unseenIn = () => new RegExp(UNSEEN, 'gv')

/** The text with everything in it to be seen, in one piece. */
export const visible = (text: string): string => text.replace(unseenIn(), mark)

/** The same in pieces, so that what was hidden can be made to stand out. */
export function pieces(text: string): readonly { readonly text: string; readonly unseen: boolean }[] {
  const found: { text: string; unseen: boolean }[] = []
  let at = 0
  for (const { 0: character, index } of text.matchAll(unseenIn())) {
    if (index > at) found.push({ text: text.slice(at, index), unseen: false })
    found.push({ text: mark(character), unseen: true })
    at = index + character.length
  }
  if (at < text.length) found.push({ text: text.slice(at), unseen: false })
  return found
}

/** A value as a person reads it: a text as it is, everything else as indented JSON. */
export const asText = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'nothing')

/** A field of a form, without the blanks around it. */
export function field(form: FormData, name: string): string {
  const value = form.get(name)
  return typeof value === 'string' ? value.trim() : ''
}

/** One line of an input: its values, without their names. */
export function brief(input: unknown, longest = 200): string {
  const values = typeof input === 'object' ? Object.values(input ?? {}) : [input]
  const words = values.map((value) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')))
  return visible(words.join(' · ').slice(0, longest).replaceAll(/\s+/g, ' '))
}

/** Where a thread is shown: its name is somebody's, and may have signs in it that mean something in an address. */
export const threadPath = (id: string): string => `/threads/${encodeURIComponent(id)}`

/** JSON to be edited, with nothing in it that one does not see: such characters are written as what they are. */
export const editable = (value: unknown): string =>
  (JSON.stringify(value, null, 2) ?? '').replace(unseenIn(), (found) => found.split('').map(escaped).join(''))

const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/** `run_01a1e358…` with as much as tells it from its neighbours; a name that somebody gave is what it is. */
export const shortId = (id: string): string => id.replace(/^([a-z]+_)[0-9a-f]{24}([0-9a-f]{8})$/, '$1$2')
