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
  program ??= findOrBuild()
  return program
}

let program: Promise<string> | undefined

async function findOrBuild(): Promise<string> {
  const name = `program-${digestOfSources()}`
  if (!existsSync(join(CACHE, name))) await build(name)
  return join(CACHE, name)
}

function digestOfSources(): string {
  const others = ['package-lock.json', 'package.json', 'tsdown.config.ts', 'src/tsconfig.json']
  const files = [...globSync(['src/**/*.{ts,mjs}', 'bin/*'], { cwd: ROOT }), ...others].toSorted()
  const hash = createHash('sha256')
  for (const file of files) hash.update(`${file}\0`).update(readFileSync(join(ROOT, file)))
  return hash.digest('hex').slice(0, 16)
}

/** Under its name only once it is whole: somebody else may be building the same. */
async function build(name: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true })
  removeOld()
  const folder = mkdtempSync(join(CACHE, 'program-'))
  try {
    for (const each of ['bin', 'package.json']) cpSync(join(ROOT, each), join(folder, each), { recursive: true })
    symlinkSync(join(ROOT, 'dashboard'), join(folder, 'dashboard'))
    await promisify(execFile)(process.execPath, [BUILD, folder], { cwd: ROOT })
    renameSync(folder, join(CACHE, name))
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    if (!existsSync(join(CACHE, name))) throw error
  }
}

function removeOld(): void {
  for (const name of readdirSync(CACHE).filter((each) => each.startsWith('program-'))) {
    const folder = join(CACHE, name)
    const age = Date.now() - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0)
    if (age > KEPT_MS) rmSync(folder, { recursive: true, force: true })
  }
}
