import { openSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'

import { writeFileAtomic } from '../base/files.ts'
import type { WriteOptions } from '../base/files.ts'
import { refuseMissing } from '../secrets/codec.ts'
import { isSealedText, openedFrom, sealedFor } from '../secrets/folders.ts'

/** What a command will read: with secrets sealed, as long as it lies there. */
export const writeInputFile = (path: string, text: string, options: WriteOptions = {}): Promise<void> =>
  writeFileAtomic(path, sealedFor(dirname(path), text), { mode: 0o600, ...options })

/** As it was written. */
export const readInputFile = (path: string): string => openedFrom(dirname(path), readFileSync(path, 'utf8'))

/** The file itself, where nothing in it is sealed; otherwise the exact text, which goes to the command without a file. */
export function openInputFile(path: string): { readonly fd: number } | { readonly text: string } {
  const stored = readFileSync(path, 'utf8')
  if (!isSealedText(stored)) return { fd: openSync(path, 'r') }
  const text = openedFrom(dirname(path), stored)
  refuseMissing(text)
  return { text }
}
