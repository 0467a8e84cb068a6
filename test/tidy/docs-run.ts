import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { commandsInHelp, placeOf, type Block, type Subcommands } from './docs.ts'
import { ROOT, type SourceFile } from './tree.ts'
import { builtProgram } from '../support/built-program.ts'

const LONGEST_BLOCK_MS = 90_000

/** What the compiler says about these modules, where `holdfast` is the public surface in `src`. */
export function compilerErrors(modules: readonly SourceFile[]): string[] {
  mkdirSync(join(ROOT, 'node_modules/.cache'), { recursive: true })
  const folder = mkdtempSync(join(ROOT, 'node_modules/.cache/docs-'))
  try {
    for (const { path, text } of modules) writeFileSync(join(folder, path), text)
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings(modules)))
    const { status, stdout } = spawnSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder, '--pretty', 'false'], {
      cwd: folder,
      encoding: 'utf8',
    })
    return status === 0 ? [] : stdout.trim().split('\n')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const settings = (modules: readonly SourceFile[]) => ({
  extends: '../../../tsconfig.json',
  compilerOptions: {
    types: ['node'],
    rootDir: '../../..',
    rewriteRelativeImportExtensions: false,
    paths: {
      'src/*': ['../../../src/*'],
      holdfast: ['../../../src/index.ts'],
      'holdfast/*': ['../../../src/*/index.ts', '../../../src/*.ts'],
    },
  },
  include: [],
  files: modules.map((file) => file.path),
})

/** Runs a block as a newcomer would, in an empty home, and says what went wrong. Whatever it started ends with it. */
export function runShell(block: Block): Promise<string[]> {
  return runIn(mkdtempSync(join(tmpdir(), 'holdfast-docs-')), block, 'sh', ['-eu', '-c', block.text])
}

/** Runs a program as it stands, where `holdfast` is this clone. */
export function runProgram(block: Block): Promise<string[]> {
  const home = mkdtempSync(join(tmpdir(), 'holdfast-docs-'))
  mkdirSync(join(home, 'node_modules'))
  for (const name of ['zod', 'ai']) symlinkSync(join(ROOT, 'node_modules', name), join(home, 'node_modules', name))
  writeFileSync(join(home, 'example.ts'), block.text)
  return runIn(home, block, process.execPath, ['--import', join(ROOT, 'test/support/own-package.ts'), 'example.ts'])
}

async function runIn(home: string, block: Block, program: string, args: readonly string[]): Promise<string[]> {
  const env = { HOME: home, HOLDFAST_HOME: join(home, '.holdfast'), ...(await ownProgram()) }
  const child = spawn(program, args, {
    cwd: home,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output: Buffer[] = []
  child.stdout.on('data', (bytes: Buffer) => output.push(bytes))
  child.stderr.on('data', (bytes: Buffer) => output.push(bytes))
  const deadline = setTimeout(() => endGroup(child.pid), LONGEST_BLOCK_MS)
  child.once('exit', () => endGroup(child.pid))
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  clearTimeout(deadline)
  rmSync(home, { recursive: true, force: true })
  return code === 0 ? [] : [`${placeOf(block)}: ended with ${code ?? signal}\n${Buffer.concat(output).toString()}`]
}

/** The command line as it is installed, with the Node that this clone brings along. */
async function ownProgram(): Promise<Record<string, string>> {
  const program = await builtProgram()
  const tools = [join(program, 'bin'), join(ROOT, 'node_modules/.bin'), process.env['PATH']]
  return { PATH: tools.join(delimiter), NODE_COMPILE_CACHE: join(program, 'compiled') }
}

function endGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, 'SIGKILL')
  } catch {
    // Nobody of it is left.
  }
}

/** What `--help` says behind every command, by the command's words. In one process: thirty would take ten seconds. */
const ALL_HELP = `
  const { makeProgram } = await import(${JSON.stringify(pathToFileURL(join(ROOT, 'src/cli/main.ts')).href)})
  const helpOf = (command, words) => [
    [words.join(' '), command.helpInformation()],
    ...command.commands.flatMap((child) =>
      [child.name(), ...child.aliases()].flatMap((name) => helpOf(child, [...words, name]))),
  ]
  console.log(JSON.stringify(helpOf(await makeProgram(() => {}), [])))`

/** Asks the command line itself. */
export function askCommandLine(): Subcommands {
  const asked = spawnSync(process.execPath, ['--input-type=module', '-e', ALL_HELP], { encoding: 'utf8' })
  if (asked.status !== 0) throw new Error(`the command line does not say what it knows: ${asked.stderr}`)
  const help = new Map(JSON.parse(asked.stdout) as [string, string][])
  return (words) => commandsInHelp(help.get(words.join(' ')) ?? '')
}
