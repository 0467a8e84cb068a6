/**
 * Text from commands, models and people must not steer a terminal or hide in it: control characters, marks that turn the
 * direction, whatever takes no room (zero-width, tags, fillers), separators of lines and halves of characters are shown,
 * not sent. The two selectors of how an emoji looks stay. A flood of blank lines pushes nothing out of sight.
 */
export function visible(text: string): string {
  return text
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
export const jsonText = (value: unknown, indent?: number): string => escapeUnseen(JSON.stringify(value, null, indent))

/** Of a text that is JSON already. */
export const escapeUnseen = (json: string): string => json.replace(UNSEEN, escaped)

const escaped = (character: string) =>
  Array.from({ length: character.length }, (_, index) => {
    return `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`
  }).join('')
