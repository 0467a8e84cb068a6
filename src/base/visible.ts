import { HoldfastError } from './errors.ts'

/**
 * Text from commands, models and people must not steer a terminal or hide in it: control characters, marks that turn the
 * direction, whatever takes no room (zero-width, tags, fillers), separators of lines and halves of characters are shown,
 * not sent. The two selectors of how an emoji looks stay. A flood of blank lines pushes nothing out of sight.
 */
export function visible(text: string): string {
  return veil
    .text(text)
    .replace(UNSEEN, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
    .replace(FLOOD, (lines) => `\n\\n × ${lines.split('\n').length - 2}\n`)
}

/** The same in one line: for a cell of a table, a title, a header. */
export const visibleLine = (text: string): string => visible(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')

const UNSEEN =
  /[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]--[\u{fe0e}-\u{fe0f}\n\t]]/gv

/** Five line ends in a row and more: no text for people needs them. */
const FLOOD = /\n(?:[ \t]*\n){4,}/g

/** The same value, and nothing raw in it that a terminal would act on or not show: all of it is inside of strings. */
export const jsonText = (value: unknown, indent?: number): string =>
  escapeUnseen(veil.json(JSON.stringify(value, null, indent)))

/** Of a text that is JSON already. */
const escapeUnseen = (json: string): string => json.replace(UNSEEN, escaped)

const escaped = (character: string) =>
  Array.from({ length: character.length }, (_, index) => {
    return `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`
  }).join('')

/** What hides secrets on the way out. This folder knows none; whoever does sets it, once for the process (src/secrets/veil.ts). */
export interface Veil {
  text(text: string): string
  /** Of a text that is JSON, and stays it. */
  json(json: string): string
  /** How many values it would hide. */
  hidden(text: string): number
  /** Two texts in JSON: what it hid of the first and is in the second as it was shown is put in again; undefined if that is not clear. */
  putBack(original: string, edited: string): string | undefined
  /** For text that comes in pieces. */
  stream(): VeiledStream
}

export interface VeiledStream {
  /** What may be told by now. */
  write(text: string): string
}

let veil: Veil = {
  text: (text) => text,
  json: (json) => json,
  hidden: () => 0,
  putBack: (_, edited) => edited,
  stream: () => ({ write: (text) => text }),
}

export const setVeil = (own: Veil): void => void (veil = own)

/** For text that leaves as it is, without being shown to a person. */
export const veiled = (text: string): string => veil.text(text)

export const hiddenValues = (text: string): number => veil.hidden(text)

export const veiledStream = (): VeiledStream => veil.stream()

/** What a person made of a value of which they were shown the visible part. */
export function withHidden(original: unknown, edited: unknown): unknown {
  if (edited === undefined) return edited
  const whole = veil.putBack(JSON.stringify(original), JSON.stringify(edited))
  if (whole !== undefined) return JSON.parse(whole)
  throw new HoldfastError(
    'approvals/hidden',
    'it is not clear which hidden value is meant, because several are shown in the same words',
    {
      remedy: 'write them out, or leave them out',
    },
  )
}
