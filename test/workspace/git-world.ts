import { execFileSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { systemClock } from '../../src/base/clock.ts'
import type { Git, Sha } from '../../src/git/git.ts'
import { land } from '../../src/git/land.ts'
import type { Landing } from '../../src/git/landing.ts'
import { openRepository, type OpenedRepository } from '../../src/git/repository.ts'
import { snapshot, type Snapshot, type SnapshotOptions } from '../../src/git/snapshot.ts'
import { openTree, placeIn, type OpenTree, type TreePlace } from '../../src/git/tree.ts'
import { temporaryFolder } from '../support/engines.ts'

export const AT = Date.UTC(2026, 0, 2, 3, 4, 5)

/** In memory where there is enough: none of these tests cuts the power, and git waits for the disk with every object. */
export function quickFolder(): string {
  const memory = '/dev/shm'
  const hasRoom = existsSync(memory) && statfsSync(memory).bavail * statfsSync(memory).bsize > 2e9
  return temporaryFolder(hasRoom ? memory : tmpdir())
}

/** A person with a repository, and a folder of ours beside it. */
export class GitWorld {
  readonly folder: string
  readonly project: string
  readonly git: Git
  readonly env: Record<string, string>

  constructor(folder = quickFolder()) {
    this.folder = folder
    this.project = join(folder, 'project')
    const home = join(folder, 'user')
    mkdirSync(home, { recursive: true })
    mkdirSync(this.project)
    writeFileSync(
      join(home, '.gitconfig'),
      '[user]\n\tname = Pat\n\temail = pat@example.com\n[init]\n\tdefaultBranch = main\n',
    )
    this.env = { PATH: process.env['PATH'] ?? '', HOME: home, GIT_CONFIG_NOSYSTEM: '1' }
    this.git = { clock: systemClock, env: this.env, rooms: join(folder, 'rooms') }
  }

  /** What the person types, in their tree or elsewhere. */
  user(args: readonly string[], cwd = this.project): string {
    return execFileSync('git', args, { cwd, env: this.env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
  }

  write(files: Readonly<Record<string, string>>, root = this.project): void {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    }
  }

  commit(files: Readonly<Record<string, string>>, message = 'change'): Sha {
    this.write(files)
    this.user(['add', '-A'])
    this.user(['commit', '-q', '-m', message])
    return this.user(['rev-parse', 'HEAD'])
  }

  /** A repository with one commit of these files. */
  start(
    files: Readonly<Record<string, string>> = { 'a.txt': 'a\n', 'dir/b.txt': 'b\n', 'c.txt': 'c\n' },
  ): Promise<OpenedRepository> {
    this.user(['init', '-q'])
    this.commit(files, 'first')
    return this.open()
  }

  open(folder = this.project): Promise<OpenedRepository> {
    return openRepository(this.git, folder)
  }

  place(run = 'run_1'): TreePlace {
    return placeIn(join(this.folder, 'workspaces', run))
  }

  async opened(repo: OpenedRepository, run = 'run_1', more: Partial<OpenTree> = {}): Promise<TreePlace> {
    const place = this.place(run)
    await openTree(this.git, repo, place, { base: repo.commit, branch: `holdfast/${run}`, ...more })
    return place
  }

  take(repo: OpenedRepository, place: TreePlace, more: Partial<SnapshotOptions> = {}): Promise<Snapshot> {
    return snapshot(this.git, repo, place, { parent: repo.commit, message: 'the work', at: AT, ...more })
  }

  /** The work of a run that wrote (or, with null, removed) these files: a commit on the base. */
  async work(repo: OpenedRepository, files: Readonly<Record<string, string | null>>, run = 'run_1'): Promise<Snapshot> {
    const place = await this.opened(repo, run)
    for (const [path, text] of Object.entries(files)) {
      if (text === null) execFileSync('rm', ['-r', join(place.tree, path)])
      else this.write({ [path]: text }, place.tree)
    }
    return this.take(repo, place)
  }

  land(repo: OpenedRepository, to: Sha, more: Partial<Landing> = {}) {
    return land(this.git, repo, { target: 'refs/heads/main', from: repo.commit, to, runId: 'run_1', ...more })
  }

  tip(ref = 'refs/heads/main'): Sha {
    return this.user(['rev-parse', ref])
  }

  status(cwd = this.project): string {
    return this.user(['status', '--porcelain'], cwd)
  }

  /** Nothing broken, nothing of a landing left, as git itself sees it. */
  fsck(): string {
    return this.user(['fsck', '--strict', '--no-dangling', '--no-progress'])
  }

  read(path: string, root = this.project): string {
    return readFileSync(join(root, path), 'utf8')
  }

  has(path: string, root = this.project): boolean {
    return existsSync(join(root, path))
  }
}

/** Everything in a folder but its repository: names, kinds, modes and contents. */
export function listing(root: string, path = ''): Record<string, string> {
  const all: Record<string, string> = {}
  for (const name of readdirSync(join(root, path), 'latin1')) {
    if (path === '' && name === '.git') continue
    const place = Buffer.from(`${join(root, path)}/${name}`, 'latin1')
    const found = lstatSync(place)
    const key = path === '' ? name : `${path}/${name}`
    if (found.isDirectory()) Object.assign(all, listing(root, key))
    else if (found.isSymbolicLink()) all[key] = `-> ${readlinkSync(place)}`
    else all[key] = `${(found.mode & 0o100) === 0 ? '' : 'x '}${readFileSync(place, 'latin1')}`
  }
  return all
}
