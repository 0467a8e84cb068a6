import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { systemClock } from '../../src/base/clock.ts'
import { initRepository } from '../../src/git/init.ts'
import { asRecords, rawPath, records, shownPath } from '../../src/git/paths.ts'
import type { Tool, ToolContext } from '../../src/loop/ports.ts'
import { fileTools } from '../../src/tools/files.ts'
import type { Dice } from '../simulation/seeded.ts'
import { polluted } from './config.ts'
import { bentText, oddText } from './odd.ts'
import type { Input, OpenSurface, Surface } from './surface.ts'

const OPERATIONS = [
  'files_read',
  'files_write',
  'files_write',
  'files_edit',
  'files_list',
  'files_search',
  'git',
] as const
const SECRET = 'what is outside is nobody’s business'
/** Of the commit: git does not take the first day of 1970. */
const AT = Date.UTC(2026, 0, 1)
/** Committing a folder starts some processes. */
const BATCHES_OF_A_COMMIT = 10

function pathOf(dice: Dice, root: string): string {
  const parts = [
    'dir',
    'a.txt',
    'link',
    'link/secret.txt',
    'secret',
    'dir/inner/b.txt',
    '../outside/secret.txt',
    '.git/config',
    root,
  ]
  const part = () =>
    dice.chance(0.5) ? dice.pick(parts) : dice.chance(0.4) ? bentText(dice, dice.pick(parts)) : oddText(dice)
  return Array.from({ length: 1 + dice.below(3) }, part).join(dice.pick(['/', '//', '\\', '']))
}

/** A folder for the tools, and beside it what they must not touch. */
class FileNames implements OpenSurface {
  readonly #folder: string
  readonly #root: string
  readonly #outside: string
  readonly #tools: ReadonlyMap<string, Tool>
  #batches = 0
  #names: readonly Buffer[] = []

  constructor(folder: string) {
    this.#folder = folder
    this.#root = join(folder, 'root')
    this.#outside = join(folder, 'outside')
    this.#tools = new Map(fileTools([this.#root]).map((tool) => [tool.name, tool]))
  }

  begin(dice: Dice): Promise<void> {
    this.#batches += 1
    for (const folder of [this.#root, this.#outside]) rmSync(folder, { recursive: true, force: true })
    mkdirSync(this.#outside)
    writeFileSync(join(this.#outside, 'secret.txt'), SECRET)
    mkdirSync(join(this.#root, 'dir', 'inner'), { recursive: true })
    writeFileSync(join(this.#root, 'a.txt'), 'one\ntwo\n')
    symlinkSync('../outside', join(this.#root, 'link'))
    symlinkSync('../outside/secret.txt', join(this.#root, 'secret'))
    this.#names = fileNames(dice)
    for (const name of this.#names) writeFileSync(Buffer.concat([Buffer.from(`${this.#root}/`), name]), 'one')
    return Promise.resolve()
  }

  draw = (dice: Dice): Input => {
    const text = dice.pick(['one', 'new text', oddText(dice)])
    return [dice.pick(OPERATIONS), pathOf(dice, this.#root), text, dice.pick(['two', oddText(dice)])]
  }

  async feed([operation = '', path = '', text = '', other = '']: Input): Promise<readonly string[]> {
    if (operation === 'git') return roundTrip(path + text)
    const tool = this.#tools.get(operation)
    if (tool === undefined) return []
    const valid = tool.validate(inputOf(operation, path, text, other))
    if ('error' in valid) return []
    const outcome = await tool.perform(valid.input, CONTEXT)
    const told = JSON.stringify(outcome)
    return [
      ...(outcome.kind === 'in-doubt' ? [`${operation} of ${JSON.stringify(path)} is in doubt: ${outcome.error}`] : []),
      ...(told.includes(SECRET) ? [`${operation} of ${JSON.stringify(path)} told what is outside`] : []),
      ...(operation === 'files_write' && outcome.kind === 'done' ? await this.#isThere(path, text) : []),
      ...polluted(),
    ]
  }

  /** What was written is what is read. Half a character has no bytes. */
  async #isThere(path: string, text: string): Promise<readonly string[]> {
    if (text.includes('\0')) return []
    const outcome = await this.#tools.get('files_read')!.perform({ path }, CONTEXT)
    const read = outcome.kind === 'done' ? (outcome.result as { readonly text: string }).text : outcome.error
    return read.startsWith(text.toWellFormed().slice(0, 10_000))
      ? []
      : [`${JSON.stringify(path)} was written, and read as ${read.slice(0, 100)}`]
  }

  async settle(): Promise<readonly string[]> {
    const names = readdirSync(this.#outside)
    const secret = readFileSync(join(this.#outside, 'secret.txt'), 'utf8')
    const strangers = readdirSync(this.#folder).filter((name) => !['root', 'outside', 'rooms'].includes(name))
    return [
      ...(names.length === 1 && secret === SECRET ? [] : [`what is outside was changed: ${names.join(', ')}`]),
      ...(strangers.length === 0 ? [] : [`something was put beside the root: ${strangers.join(', ')}`]),
      ...(this.#batches % BATCHES_OF_A_COMMIT === 1 ? await this.#committed() : []),
    ]
  }

  /** A commit has every name, byte by byte, as git itself tells it. */
  async #committed(): Promise<readonly string[]> {
    const env = { PATH: process.env['PATH'] ?? '', HOME: this.#folder, GIT_CONFIG_NOSYSTEM: '1' }
    const git = { clock: systemClock, env, rooms: join(this.#folder, 'rooms') }
    rmSync(join(this.#root, '.git'), { recursive: true, force: true })
    await initRepository(git, this.#root, AT)
    const list = await promisify(execFile)('git', ['-C', this.#root, 'ls-tree', '-r', '-z', '--name-only', 'HEAD'], {
      encoding: 'latin1',
      env,
    })
    const committed = new Set(list.stdout.split('\0'))
    const missing = this.#names
      .map((name) => name.toString('latin1'))
      .filter((name) => !committed.has(name) && this.#isStill(name))
    return missing.map((name) => `the commit has no ${JSON.stringify(name)}`)
  }

  #isStill(name: string): boolean {
    const path = Buffer.concat([Buffer.from(`${this.#root}/`), Buffer.from(name, 'latin1')])
    return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

/** Names of any byte but the two that no name can have. */
function fileNames(dice: Dice): Buffer[] {
  const byte = () => dice.pick([1 + dice.below(46), 48 + dice.below(208)])
  const names = Array.from({ length: 12 }, () => Buffer.from(Array.from({ length: 1 + dice.below(20) }, byte)))
  return names.filter(
    (name) => !['.', '..', '.git', 'dir', 'link', 'secret', 'a.txt'].includes(name.toString('latin1')),
  )
}

function inputOf(operation: string, path: string, text: string, other: string): unknown {
  if (operation === 'files_write') return { path, content: text }
  if (operation === 'files_edit') return { path, old_text: text, new_text: other }
  if (operation === 'files_search') return { path, text, file_ending: other.slice(0, 3) }
  return operation === 'files_list' ? { path, depth: 3 } : { path }
}

const CONTEXT = {
  signal: new AbortController().signal,
  clock: systemClock,
  deadline: Number.MAX_SAFE_INTEGER,
} as unknown as ToolContext

/** Git gives names in rows of bytes; what is shown of one stays on its line. */
function roundTrip(text: string): readonly string[] {
  const path = rawPath(text.replaceAll('\0', ''))
  const back = path === '' ? path : records(asRecords([path]))[0]
  const shown = shownPath(path)
  return [
    ...(back === path ? [] : [`${sha1(text)} came back from git as another name`]),
    ...(/\p{Cc}/u.test(shown) ? [`${JSON.stringify(shown)} does not stay on its line`] : []),
  ]
}

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex')

export const names: Surface = { name: 'file names', open: (folder) => Promise.resolve(new FileNames(folder)) }
