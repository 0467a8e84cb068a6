import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The folder of the repository in which a run lands: a disk of its own, as it were. */
export const REPOSITORY = 'repository'
export const BRANCH = 'refs/heads/main'

/** A file as git knows it: what is in it, or where it points to. */
export interface Tracked {
  readonly content: string
  readonly is?: 'executable' | 'pointer'
}
export type Files = Readonly<Record<string, Tracked>>

const long = Array.from({ length: 2_000 }, (_, line) => `line ${line}\n`).join('')

/** What is committed before a run, and what the run makes of it: every kind of change that a landing knows. */
export const FILES_BEFORE: Files = {
  file: { content: 'one\n' },
  gone: { content: 'it goes\n' },
  'deep/er/old': { content: 'so does its folder\n' },
  same: { content: 'the same\n' },
  program: { content: 'echo one\n', is: 'executable' },
}
export const FILES_AFTER: Files = {
  file: { content: 'one\nmore\n' },
  'new/folder/long': { content: long },
  'new/folder/program': { content: 'echo two\n', is: 'executable' },
  pointer: { content: 'file', is: 'pointer' },
  same: { content: 'the same\n' },
  program: { content: 'echo one\necho more\n', is: 'executable' },
}

/** What a run does: a line for the shell that makes the one of the other, in the folder where it is. */
export const WORK = `echo more >> file; rm -r gone deep; mkdir -p new/folder; seq -f 'line %.0f' 0 1999 > new/folder/long; \
echo 'echo two' > new/folder/program; chmod +x new/folder/program; ln -s file pointer; echo 'echo more' >> program`

const SOMEBODY = ['-c', 'user.name=Somebody', '-c', 'user.email=somebody@example.com']
const PLAIN = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', LC_ALL: 'C' }

/** Made, and on the disk, before anything is recorded. */
export function makeRepository(root: string): void {
  const repository = join(root, REPOSITORY)
  for (const [path, { content, is }] of Object.entries(FILES_BEFORE)) {
    mkdirSync(dirname(join(repository, path)), { recursive: true })
    if (is === 'pointer') symlinkSync(content, join(repository, path))
    else writeFileSync(join(repository, path), content, { mode: is === 'executable' ? 0o755 : 0o644 })
  }
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-C', repository, ...SOMEBODY, ...args], {
      stdio: 'ignore',
      env: { ...process.env, ...PLAIN },
    })
  git('init', '-q', '--template=', '--initial-branch=main')
  git('add', '.')
  git('commit', '-qm', 'one')
}

/** Asks git itself, as whoever looks into it afterwards does. */
export function askGit(
  root: string,
  ...args: readonly string[]
): { readonly code: number | null; readonly text: string } {
  const env = { ...process.env, ...PLAIN }
  const { status, stdout, stderr } = spawnSync('git', ['-C', join(root, REPOSITORY), ...args], {
    env,
    encoding: 'latin1',
  })
  return { code: status, text: (status === 0 ? stdout : stdout + stderr).trim() }
}

/** What is damaged in it; objects that nobody names may be there. */
export function damageIn(root: string): string[] {
  const { code, text } = askGit(root, 'fsck', '--strict', '--full', '--no-dangling', '--no-progress')
  return code === 0 && text === '' ? [] : [`git fsck says: ${text.split('\n').slice(0, 3).join('; ')}`]
}

/** How the files of a commit differ from these. */
export function unlike(root: string, commit: string, files: Files): string | undefined {
  const listed = askGit(root, 'ls-tree', '-r', '-z', commit)
  if (listed.code !== 0) return `cannot be read: ${listed.text}`
  const found = new Map(
    listed.text
      .split('\0')
      .filter((line) => line !== '')
      .map((line): [string, string] => [line.slice(line.indexOf('\t') + 1), line.slice(0, line.indexOf('\t'))]),
  )
  const paths = new Set([...found.keys(), ...Object.keys(files)])
  return [...paths].find((path) => found.get(path) !== entryOf(root, files[path]))
}

function entryOf(root: string, file: Tracked | undefined): string | undefined {
  if (file === undefined) return undefined
  const { content, is } = file
  const mode = is === 'pointer' ? '120000' : is === 'executable' ? '100755' : '100644'
  return `${mode} blob ${blobOf(root, content)}`
}

const blobs = new Map<string, string>()

function blobOf(root: string, content: string): string {
  const known = blobs.get(content)
  if (known !== undefined) return known
  const made = execFileSync('git', ['hash-object', '--stdin'], { cwd: root, input: content, encoding: 'latin1' }).trim()
  blobs.set(content, made)
  return made
}

/** As git tells its user to do: a command of it that was cut off leaves the lock of its ref. */
export function removeRefLocks(root: string): void {
  const locks = spawnSync('find', ['.git', '-name', '*.lock', '-not', '-name', 'index.lock', '-print'], {
    cwd: join(root, REPOSITORY),
    encoding: 'latin1',
  })
  for (const lock of locks.stdout.split('\n').filter(Boolean)) rmSync(join(root, REPOSITORY, lock))
}
