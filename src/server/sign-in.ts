import { LIMITS } from '../base/limits.ts'
import { HoldfastError } from '../base/errors.ts'
import type { Clock } from '../base/clock.ts'
import type { Randomness } from '../base/ids.ts'
import { isSame } from './credentials.ts'

/** Without the four that are taken for others. */
const LETTERS = '0123456789abcdefghjkmnpqrstvwxyz'
const CODE_BYTES = 10

interface Code {
  readonly text: string
  readonly until: number
}

/**
 * Single-use codes: what a person carries from the terminal to a browser. They live in this process alone, are good for ten
 * minutes and for one browser, and say nothing about the token.
 */
export class SignInCodes {
  readonly #clock: Clock
  readonly #random: Randomness
  #codes: readonly Code[] = []
  #tries: readonly number[] = []

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Randomness }) {
    this.#clock = clock
    this.#random = random
  }

  /** 80 bits, in groups that can be read out and typed. */
  make(): { readonly code: string; readonly expiresAt: number } {
    const bits = this.#random
      .hex(CODE_BYTES)
      .split('')
      .map((digit) => Number.parseInt(digit, 16).toString(2).padStart(4, '0'))
    const letters = (bits.join('').match(/.{5}/g) ?? []).map((five) => LETTERS[Number.parseInt(five, 2)])
    const text = letters.join('')
    const until = this.#clock.monotonicMs() + LIMITS.signInCodeMs
    this.#codes = [...this.#good(), { text, until }].slice(-LIMITS.signInCodes)
    return { code: text.match(/.{4}/g)!.join('-'), expiresAt: this.#clock.now() + LIMITS.signInCodeMs }
  }

  /** Used up by the first who shows it. Guessing is made slow rather than noticed. */
  use(given: string): void {
    this.#refuseMany()
    const text = given.toLowerCase().replaceAll(/[^0-9a-z]/g, '')
    const found = this.#good().find((code) => isSame(text, code.text))
    if (found === undefined) {
      this.#tries = [...this.#tries, this.#clock.monotonicMs()]
      throw new HoldfastError('auth/wrong-code', 'this code is not good, or not any more', {
        remedy: '`holdfast token code` prints a new one',
      })
    }
    this.#codes = this.#codes.filter((code) => code !== found)
  }

  #good(): readonly Code[] {
    const now = this.#clock.monotonicMs()
    return this.#codes.filter(({ until }) => until > now)
  }

  #refuseMany(): void {
    const since = this.#clock.monotonicMs() - LIMITS.signInTriesMs
    this.#tries = this.#tries.filter((at) => at > since)
    if (this.#tries.length < LIMITS.signInTries) return
    throw new HoldfastError('capacity/sign-in', 'too many wrong codes', {
      remedy: 'wait a minute',
      retry: { afterMs: Math.ceil((this.#tries[0] ?? since) - since) },
    })
  }
}
