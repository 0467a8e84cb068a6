import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { FIXTURES } from './fixtures.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const BUILD = fileURLToPath(new URL('./build-program.ts', import.meta.url))
/** Below node_modules, where what it depends on is found. */
const CACHE = join(ROOT, 'node_modules/.cache')
/** Longer than any run of the tests, which may still use one of older sources. */
const KEPT_MS = 2 * 3_600_000

/**
 * The folder with the command line as people install it, made of these very sources. Building it takes half a second, and each
 * command starts in two thirds of the time that 150 files of sources take.
 */
export function builtProgram(): Promise<string> {
  program ??= findOrBuild('program', SOURCES)
  return program
}

/** The programs of the tests themselves, those that are killed again and again: the same, and so is what it saves. */
export function builtFixtures(): Promise<string> {
  fixtures ??= findOrBuild('fixtures', [...SOURCES, 'test/support/*.ts', ...FIXTURES])
  return fixtures
}

let program: Promise<string> | undefined
let fixtures: Promise<string> | undefined

const OTHERS = [
  'test/support/build-program.ts',
  'package-lock.json',
  'package.json',
  'tsdown.config.ts',
  'src/tsconfig.json',
]
const SOURCES = ['src/**/*.{ts,mjs}', 'bin/*', ...OTHERS]

async function findOrBuild(what: 'program' | 'fixtures', sources: readonly string[]): Promise<string> {
  const name = `${what}-${digestOf(sources)}`
  if (!existsSync(join(CACHE, name))) await build(what, name)
  return join(CACHE, name)
}

function digestOf(sources: readonly string[]): string {
  const hash = createHash('sha256')
  for (const file of globSync(sources, { cwd: ROOT }).toSorted())
    hash.update(`${file}\0`).update(readFileSync(join(ROOT, file)))
  return hash.digest('hex').slice(0, 16)
}

/** Under its name only once it is whole: somebody else may be building the same. */
async function build(what: 'program' | 'fixtures', name: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true })
  removeOld(what)
  const folder = mkdtempSync(join(CACHE, `${what}-`))
  try {
    for (const each of ['bin', 'package.json']) cpSync(join(ROOT, each), join(folder, each), { recursive: true })
    symlinkSync(join(ROOT, 'dashboard'), join(folder, 'dashboard'))
    await promisify(execFile)(process.execPath, [BUILD, what, folder], { cwd: ROOT })
    renameSync(folder, join(CACHE, name))
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    if (!existsSync(join(CACHE, name))) throw error
  }
}

function removeOld(what: string): void {
  for (const name of readdirSync(CACHE).filter((each) => each.startsWith(`${what}-`))) {
    const folder = join(CACHE, name)
    const age = Date.now() - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0)
    if (age > KEPT_MS) rmSync(folder, { recursive: true, force: true })
  }
}
