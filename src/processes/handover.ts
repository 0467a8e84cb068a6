import { readFileSync, writeSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'

import type { KeyPlace } from '../secrets/key.ts'
import { KnownSecrets } from '../secrets/known.ts'
import { Secrets } from '../secrets/secrets.ts'

/*
 * What a supervisor is told by the worker that starts it, and by nobody else: through a pipe, so that it is in no file, no argument
 * and no variable. A worker that dies before it has told all of it has started nothing.
 */
export interface Handover {
  readonly argv: readonly [string, ...string[]]
  readonly env: Readonly<Record<string, string>>
  /** What the command reads, if it must not be in a file. */
  readonly input?: string
  /** Which core files its command may leave. */
  readonly dumps?: string
  /** What to keep out of the files, and under which key. */
  readonly secrets?: { readonly key: KeyPlace; readonly known: Readonly<Record<string, string>> }
}

export const HANDOVER_FD = 5

export function handOver(pipe: Writable, handover: Handover): void {
  // A supervisor that is gone says so by its exit.
  pipe.on('error', () => {})
  pipe.end(JSON.stringify(handover))
}

/** Undefined: its worker died before it had said everything. */
export function takeHandover(): Handover | undefined {
  try {
    return JSON.parse(readFileSync(HANDOVER_FD, 'utf8')) as Handover
  } catch {
    return undefined
  }
}

/** The other way: to the worker, if it is still there. Where the disk is sick there is no other. */
export function tellTrouble(sentence: string): void {
  try {
    writeSync(HANDOVER_FD, sentence)
  } catch {
    // It is gone, or does not listen.
  }
}

/** Whoever listens keeps no process alive by it. */
export function hearTrouble(pipe: Socket, onTrouble: (sentence: string) => void): void {
  pipe.setEncoding('utf8').on('data', (sentence: string) => onTrouble(sentence))
  pipe.unref()
}

export const tellSecrets = ({ key, known }: Secrets): NonNullable<Handover['secrets']> => ({
  key: key.place,
  known: known.values,
})

export function toldSecrets(told: Handover['secrets']): Secrets | undefined {
  if (told === undefined) return undefined
  const sources = Object.entries(told.known).map(([name, value]) => [name, { value }] as const)
  return new Secrets(told.key, new KnownSecrets(Object.fromEntries(sources)))
}
