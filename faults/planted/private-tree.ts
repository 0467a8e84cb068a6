import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')

/** Neither is a part of what is tested. */
const NOT_COPIED = new Set(['.git', 'node_modules', 'dist', '.holdfast'])

/** A copy of the sources and their tests, in which bugs are planted. */
export class PrivateTree {
  readonly root: string

  constructor() {
    this.root = mkdtempSync(join(tmpdir(), 'holdfast-planted-'))
    // A test runs the program as a user who may do little.
    chmodSync(this.root, 0o755)
    for (const name of readdirSync(ROOT).filter((each) => !NOT_COPIED.has(each)))
      cpSync(join(ROOT, name), join(this.root, name), {
        recursive: true,
        preserveTimestamps: true,
        filter: (from) => basename(from) !== 'node_modules',
      })
    linkPackages('node_modules', this.root)
    linkPackages('dashboard/node_modules', this.root)
  }

  /** Why it could not be; undefined: it is planted. */
  plant(patch: string): string | undefined {
    return applyPatch(this.root, patch)
  }

  pullOut(patch: string): void {
    const trouble = applyPatch(this.root, patch, '--reverse')
    if (trouble !== undefined) throw new Error(`the bug stays where it is: ${trouble}`)
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** Package by package: what tests build and remember is kept beside them, and that of bugs must not be the real tree's. */
function linkPackages(folder: string, root: string): void {
  mkdirSync(join(root, folder), { recursive: true })
  for (const name of readdirSync(join(ROOT, folder)).filter((each) => !/^\.(?!bin$)/.test(each)))
    symlinkSync(join(ROOT, folder, name), join(root, folder, name))
}

/** Of files, not of a repository: it works where there is none, and in none that is further up. */
export function applyPatch(root: string, patch: string, ...options: readonly string[]): string | undefined {
  const env = { ...process.env, GIT_CEILING_DIRECTORIES: dirname(root), GIT_DIR: undefined, GIT_WORK_TREE: undefined }
  const { status, stderr, error } = spawnSync('git', ['apply', ...options, patch], { cwd: root, env, encoding: 'utf8' })
  return status === 0 ? undefined : stderr.trim() || String(error)
}
