import { readFileSync } from 'node:fs'

/**
 * A machine without an id is not told from another of the same name. Its home folder is its own: the boots from which a worker of it began are
 * written there, so that what was under way before a restart is known to be dead, and what another machine has is not.
 */
const files = new Set<string>()

/** Where such a home folder keeps them. Read only when somebody asks, which is seldom. */
export function lookForBootsIn(file: string): void {
  files.add(file)
}

export const isOwnBoot = (boot: string): boolean => [...files].some((file) => readBoots(file).includes(boot))

export function readBoots(file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').filter(Boolean)
  } catch {
    return []
  }
}
