import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'

export type Look = 'executable' | 'not-executable' | 'absent'

export type Program =
  | { readonly kind: 'found'; readonly path: string }
  | { readonly kind: 'refused'; readonly exitCode: 126 | 127; readonly code: string; readonly message: string }

/** Finds the program as execvp(3) does, so that "not found" is known before anything is started. */
export function resolveProgram(
  name: string,
  { cwd, path }: { readonly cwd: string; readonly path: string | undefined },
  look: (path: string) => Look = lookAt,
): Program {
  const places = name.includes('/') ? [''] : (path ?? '/usr/local/bin:/usr/bin:/bin').split(delimiter)
  const seen = places.map((place) => resolve(cwd, place, name)).map((file) => ({ file, is: look(file) }))
  const found = name === '' ? undefined : seen.find(({ is }) => is === 'executable')
  if (found !== undefined) return { kind: 'found', path: found.file }
  return seen.some(({ is }) => is === 'not-executable') && name !== ''
    ? { kind: 'refused', exitCode: 126, code: 'EACCES', message: `not executable: ${name}` }
    : { kind: 'refused', exitCode: 127, code: 'ENOENT', message: `not found: ${name}` }
}

function lookAt(file: string): Look {
  try {
    if (!statSync(file).isFile()) return 'not-executable'
    accessSync(file, constants.X_OK)
    return 'executable'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? 'not-executable' : 'absent'
  }
}
