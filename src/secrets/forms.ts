import type { Form, KnownText } from './matcher.ts'

const escapeJson = (text: string): string => JSON.stringify(text).slice(1, -1)

const toAscii = (text: string): string =>
  escapeJson(text).replace(/[^\x20-\x7e]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** How a value is written in other texts: in JSON, in JSON inside of JSON, in JSON of ASCII alone, in an address. */
const WRITTEN: Readonly<Record<Form, (value: string) => string>> = {
  raw: (value) => value,
  json: escapeJson,
  json2: (value) => escapeJson(escapeJson(value)),
  ascii: toAscii,
  uri: (value) => (value.isWellFormed() ? encodeURIComponent(value) : value),
}

const FORMS = Object.keys(WRITTEN) as readonly Form[]

export const write = (value: string, form: Form): string => WRITTEN[form](value)

/** Each way to write it once; most values have one. */
export function formsOf(name: string, value: string): KnownText[] {
  const seen = new Set<string>()
  return FORMS.flatMap((form) => {
    const text = write(value, form)
    if (seen.has(text)) return []
    seen.add(text)
    return [{ name, form, text }]
  })
}
