import { REFERENCE } from '../base/variables.ts'
import { passwordIn, secretsOf } from './from-environment.ts'
import { KnownSecrets, looksSecret } from './known.ts'
import type { Source } from './known.ts'

type Variables = Readonly<Record<string, string | undefined>>

/** What a person declared: where a secret's value is. */
export type Declared = { readonly env: string } | { readonly file: string }

export interface Places {
  readonly environment: Variables
  /** Of the configuration. */
  readonly declared?: ReadonlyMap<string, Declared>
  /** Texts of the configuration that are secret, by where they stand; variables in them as `${NAME}`. */
  readonly written?: Readonly<Record<string, string>>
  /** Our own, by their names. */
  readonly files?: Readonly<Record<string, string>>
  /** An address with a password in it, perhaps. */
  readonly store?: string | undefined
}

/** Every secret whose value this process can know. */
export function gatherKnown(places: Places): KnownSecrets {
  const { environment, declared = new Map<string, Declared>(), written = {}, files = {}, store = '' } = places
  const known = new KnownSecrets(secretsOf(environment))
  for (const [where, text] of Object.entries(written)) addWritten(known, where, text, environment)
  for (const [name, file] of Object.entries(files)) known.add(name, { file })
  const password = passwordIn(store)
  if (password !== undefined && looksSecret(password)) known.add('HOLDFAST_STORE.password', { value: password })
  // Last: a name that somebody gave it is the one it is shown by.
  for (const [name, from] of declared) {
    const source: Source | undefined = 'file' in from ? from : valueIn(environment, from.env)
    if (source !== undefined) known.add(name, source)
  }
  return known
}

/** A header may say `Bearer ${TOKEN}`: the variable is the secret, not the word before it. */
function addWritten(known: KnownSecrets, where: string, text: string, environment: Variables): void {
  for (const [, name = ''] of text.matchAll(REFERENCE)) {
    const source = valueIn(environment, name)
    if (source !== undefined) known.add(name, source)
  }
  if (!text.includes('${')) known.add(where, { value: text.replace(/^(?:Bearer|Basic|Token) +/i, '') })
}

function valueIn(environment: Variables, name: string): Source | undefined {
  const value = environment[name]
  return value === undefined || value === '' ? undefined : { value }
}
