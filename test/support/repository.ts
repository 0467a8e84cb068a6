import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, lstatSync, mkdirSync, readFileSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

import { temporaryFolder } from './engines.ts'

const IDENTITY = {
  GIT_AUTHOR_NAME: 'Ann',
  GIT_AUTHOR_EMAIL: 'ann@example.org',
  GIT_COMMITTER_NAME: 'Ann',
  GIT_COMMITTER_EMAIL: 'ann@example.org',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
}

/** A person's own repository, with one commit, looked at by git itself and by nothing of ours. */
export class Repository {
  readonly folder: string

  constructor(files: Readonly<Record<string, string>> = { 'total.txt': '1\n' }, folder = temporaryFolder()) {
    this.folder = folder
    this.git('init', '-q', '-b', 'main')
    for (const [path, text] of Object.entries(files)) this.write(path, text)
    this.commit('first')
  }

  git(...args: readonly string[]): string {
    const env = { PATH: process.env['PATH'] ?? '', HOME: this.folder, ...IDENTITY }
    const { status, stdout, stderr } = spawnSync('git', args, { cwd: this.folder, env, encoding: 'utf8' })
    if (status !== 0) throw new Error(`git ${args.join(' ')} (exit ${status}): ${stderr}`)
    return stdout.trimEnd()
  }

  /** A script is executable. */
  write(path: string, text: string): void {
    const file = join(this.folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    if (text.startsWith('#!')) chmodSync(file, 0o755)
  }

  read(path: string): string {
    return readFileSync(join(this.folder, path), 'utf8')
  }

  commit(message: string): string {
    this.git('add', '-A')
    this.git('commit', '-q', '--allow-empty', '-m', message)
    return this.head
  }

  get head(): string {
    return this.git('rev-parse', 'HEAD')
  }

  /** How many commits lead to the branch. */
  get commits(): number {
    return Number(this.git('rev-list', '--count', 'main'))
  }

  /** One number for all that a person has there: every file with its mode and content, the index, the branches. */
  get state(): string {
    const hash = createHash('sha256')
    for (const path of filesBelow(this.folder)) hash.update(describe(path, relative(this.folder, path)))
    hash.update(this.git('ls-files', '-s'))
    hash.update(this.git('status', '--porcelain=v1'))
    hash.update(this.git('for-each-ref', 'refs/heads', 'refs/tags'))
    hash.update(this.git('symbolic-ref', 'HEAD'))
    return hash.digest('hex')
  }
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => name !== '.git')
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      return entry.isDirectory() ? [path, ...filesBelow(path)] : [path]
    })
}

function describe(path: string, name: string): string {
  const { mode } = lstatSync(path)
  const isLink = (mode & 0o170_000) === 0o120_000
  const isFile = (mode & 0o170_000) === 0o100_000
  const content = isLink ? readlinkSync(path) : isFile ? readFileSync(path).toString('base64') : ''
  return `${name}\0${mode.toString(8)}\0${content}\0`
}
