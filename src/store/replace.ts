import type { Single } from './transition.ts'

/** A database that nobody else can use for the moment. */
export interface Held {
  readonly isWhole: boolean
  /** Undefined where it cannot be read. */
  read<T>(look: Single<[], T>): T | undefined
  /** Another file takes its place; what it was stays under another name. */
  replaceBy(replacement: string, keptAs: string): void
  close(): void
}

/** Only a file can be replaced; a database on a server is restored by its own tools. */
export async function holdAlone(path: string): Promise<Held | 'in-use'> {
  const sqlite = await import('./sqlite/alone.ts')
  return sqlite.holdAlone(path)
}
