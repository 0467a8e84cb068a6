import { homedir, tmpdir } from 'node:os'
import { dirname } from 'node:path'
import { ROOT, type SourceFile } from './tree.ts'

/** Folders that say where this clone lies or who works here; nothing in it may depend on them. */
export function foldersOfThisMachine(root = ROOT, home = homedir()): string[] {
  const above = dirname(root)
  const clone = above === '/' || above === tmpdir() || above === '/tmp' ? root : above
  return [clone, home].filter((folder) => folder.split('/').length > 1 && folder !== '/')
}

/** Other people's machines, by the usual places of a home folder. */
const SOMEBODYS_HOME = /(?<![\w.])\/(?:home|Users)\/[a-z][\w-]*\//

export function machinePaths(files: readonly SourceFile[], folders = foldersOfThisMachine()): string[] {
  const here = folders.map((folder) => new RegExp(`(?<![\\w.])${folder.replace(/[.+]/g, '\\$&')}(?![\\w-])/?`))
  return files.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, index) => {
      const found = [...here, SOMEBODYS_HOME].map((pattern) => pattern.exec(line)?.[0]).find(Boolean)
      return found === undefined ? [] : [`${path}:${index + 1} names ${found}`]
    }),
  )
}
