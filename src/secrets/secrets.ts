import { makeCodec } from './codec.ts'
import type { Codec } from './codec.ts'
import { Key } from './key.ts'
import type { KeyPlace } from './key.ts'
import { KnownSecrets } from './known.ts'
import { redact } from './redact.ts'

/**
 * The secrets of one home folder as a process knows them. `seal` and `open` are for what is stored and must come back exactly;
 * `redact` is for whatever leaves.
 */
export class Secrets implements Codec {
  readonly known: KnownSecrets
  readonly key: Key
  readonly #text: Codec
  readonly #bytes: Codec

  constructor(place: KeyPlace, known: KnownSecrets = new KnownSecrets()) {
    this.known = known
    this.key = new Key(place)
    const ports = { key: this.key, valueOf: (name: string) => known.valueOf(name) }
    this.#text = makeCodec({ ...ports, matcher: () => known.matcher, encoding: 'utf8' })
    this.#bytes = makeCodec({ ...ports, matcher: () => known.byteMatcher, encoding: 'latin1' })
  }

  seal(text: string): string {
    return this.#text.seal(text)
  }

  open(text: string): string {
    return this.#text.open(text)
  }

  /** The same for bytes that need not be text, each a character. */
  get bytes(): Codec {
    return this.#bytes
  }

  redact(text: string): string {
    return redact(text, this.known.matcher)
  }
}
