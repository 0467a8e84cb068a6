import { readFileSync, statSync } from 'node:fs'

import { formsOf } from './forms.ts'
import { Matcher } from './matcher.ts'
import type { KnownText } from './matcher.ts'
import { SHAPES } from './shapes.ts'

/** Shorter ones are in too many texts by chance. */
const SHORTEST_KNOWN = 8
/** No value needs more, and each costs a look. */
const MOST_KNOWN = 500
const LONGEST_KNOWN = 64 * 1024

/** Where a secret's value comes from. */
export type Source = { readonly value: string } | { readonly file: string }

interface OnDisk {
  readonly file: string
  changedAt: number | undefined
}

/** The secrets whose values a process knows, by name. Values that were replaced stay known, to be hidden. */
export class KnownSecrets {
  readonly #values = new Map<string, string>()
  /** One that is not there yet is looked for again. */
  readonly #files = new Map<string, OnDisk>()
  readonly #former: KnownText[] = []
  #matcher: Matcher | undefined
  #byteMatcher: Matcher | undefined
  #beginnings: readonly string[] | undefined
  /** Told when a value was replaced. */
  onChange: () => void = () => {}

  constructor(sources: Readonly<Record<string, Source>> = {}) {
    for (const [name, source] of Object.entries(sources)) this.add(name, source)
  }

  /** One that is too short or too plain to be told from other text is left out. */
  add(name: string, source: Source): void {
    const known = name.replace(/[^\w.-]/g, '_').slice(0, 100)
    if (this.#values.size + this.#files.size >= MOST_KNOWN) return
    if ('value' in source) return this.#learn(known, source.value)
    this.#files.set(known, { file: source.file, changedAt: undefined })
    this.#look(known)
  }

  /** As it is now: a file that was written anew is read again. */
  valueOf(name: string): string | undefined {
    this.#look(name)
    return this.#values.get(name)
  }

  /** Looks at the files again. */
  refresh(): void {
    for (const name of this.#files.keys()) this.#look(name)
  }

  get names(): readonly string[] {
    return [...new Set([...this.#values.keys(), ...this.#files.keys()])].toSorted()
  }

  /** Every value as it may be written. Of two names for one value the first in the alphabet stands for both. */
  get texts(): readonly KnownText[] {
    const sorted = [...this.#values].toSorted(([a], [b]) => (a < b ? -1 : 1))
    const seen = new Set<string>()
    return [...sorted.flatMap(([name, value]) => formsOf(name, value)), ...this.#former].filter(({ text }) => {
      if (seen.has(text)) return false
      seen.add(text)
      return true
    })
  }

  get matcher(): Matcher {
    this.#matcher ??= new Matcher(this.texts)
    return this.#matcher
  }

  /** For bytes that are read as a character each. */
  get byteMatcher(): Matcher {
    this.#byteMatcher ??= new Matcher(
      this.texts.map((each) => ({ ...each, text: Buffer.from(each.text).toString('latin1') })),
    )
    return this.#byteMatcher
  }

  /** How known values and shapes begin, as bytes: what a stream ends with may be one of them. */
  get beginnings(): readonly string[] {
    const own = () => this.texts.map(({ text }) => Buffer.from(text).toString('latin1'))
    this.#beginnings ??= [...own(), ...SHAPES.flatMap(({ at }) => at), '~hf']
    return this.#beginnings
  }

  /** By name, for whoever must know the same. */
  get values(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#values)
  }

  #changed(): void {
    this.#beginnings = undefined
    this.#matcher = undefined
    this.#byteMatcher = undefined
    this.onChange()
  }

  #learn(name: string, value: string): void {
    const before = this.#values.get(name)
    if (!isTelling(value) || before === value) return
    if (before !== undefined) this.#former.push(...formsOf(name, before))
    this.#values.set(name, value)
    this.#changed()
  }

  #look(name: string): void {
    const onDisk = this.#files.get(name)
    if (onDisk === undefined) return
    const { file, changedAt } = onDisk
    try {
      onDisk.changedAt = statSync(file).mtimeMs
      if (onDisk.changedAt !== changedAt) this.#learn(name, readFileSync(file, 'utf8').replace(/\r?\n$/, ''))
    } catch {
      // Not there, or not for us: what is not known here says so when it is needed.
    }
  }
}

/** Words that stand for no value, or that every other text has in it. */
const PLAIN =
  /^(?:true|false|null|undefined|none|disabled|enabled|changeme|password|secret|example|default|required|optional)$/i

/** A word, as the password of a database at home often is: it would be hidden wherever somebody writes it. */
const WORD = /^[A-Za-z]{1,15}$/

/** For what nobody declared: a value that is taken for a secret by where it was found must look like one. */
export const looksSecret = (value: string): boolean => isTelling(value) && !WORD.test(value)

/** Whether hiding it would hide a secret, and not half of every text. */
function isTelling(value: string): boolean {
  if (value.length < SHORTEST_KNOWN || value.length > LONGEST_KNOWN || PLAIN.test(value)) return false
  return new Set(value).size >= 4 && value.trim() !== ''
}
