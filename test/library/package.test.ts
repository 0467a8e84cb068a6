import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { problemsOf } from '../../scripts/check-package.ts'
import { temporaryFolder } from '../support/engines.ts'
import { blocksIn } from '../tidy/docs.ts'
import { linksIn } from '../tidy/links.ts'
import { ROOT, readSource } from '../tidy/tree.ts'

const BIN = join(ROOT, 'node_modules/.bin')
const PATH = [dirname(process.execPath), process.env['PATH']].join(':')

/** What is packed as it stands. */
const TEXTS = ['CHANGELOG.md', 'LICENSE', 'README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'docs']

const TARBALL = 'holdfast.tgz'

/** The package as npm would publish it, built from these sources in a folder of its own. */
function pack(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-package-'))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  for (const name of ['src', 'bin', 'package.json', 'tsconfig.json', 'tsdown.config.ts', ...TEXTS]) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  }
  execFileSync(join(BIN, 'tsdown'), ['--log-level', 'error'], { cwd: folder, env: { ...process.env, PATH } })
  const packing = ['pack', '--ignore-scripts', '--json', '--silent']
  const listed = execFileSync('npm', packing, { cwd: folder, encoding: 'utf8', env: { ...process.env, PATH } })
  const packed = JSON.parse(listed) as { filename: string }[] | Record<string, { filename: string }>
  renameSync(join(folder, Object.values(packed)[0]!.filename), join(folder, TARBALL))
  execFileSync('tar', ['-xzf', TARBALL], { cwd: folder })
  return folder
}

let built = ''
const installed = () => join(built, 'package')
beforeAll(() => {
  built = pack()
}, 120_000)
afterAll(() => rmSync(built, { recursive: true, force: true }))

/** A project of a user. `linked`: with the package in it. */
function project(files: Readonly<Record<string, string>>, linked = true): string {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(join(ROOT, 'node_modules/zod'), join(folder, 'node_modules/zod'))
  symlinkSync(join(ROOT, 'node_modules/@types'), join(folder, 'node_modules/@types'))
  if (linked) symlinkSync(installed(), join(folder, 'node_modules/holdfast'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

function run(folder: string, program: string, ...args: readonly string[]) {
  const env = { PATH, HOME: folder, HOLDFAST_HOME: join(folder, '.holdfast') }
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, env, encoding: 'utf8', timeout: 50_000 })
  return { status, stdout, stderr }
}

const ledgerIn = (folder: string) => readFileSync(join(folder, 'ledger.txt'), 'utf8')

const programOf = (document: string) =>
  blocksIn(readSource(document)).find(({ language, marks }) => language === 'ts' && marks.includes('run'))!.text
const theExample = () => programOf('README.md')

test('the example of the README runs as it stands with the published package; run twice it has one effect', () => {
  const folder = project({ 'example.ts': theExample() })
  for (let time = 0; time < 2; time += 1) {
    expect(run(folder, process.execPath, 'example.ts')).toEqual({
      status: 0,
      stdout: 'Milk is in the ledger.\n',
      stderr: '',
    })
  }
  expect(ledgerIn(folder)).toBe('milk\n')
})

const COMPILER_OPTIONS = {
  module: 'nodenext',
  target: 'es2024',
  strict: true,
  exactOptionalPropertyTypes: true,
  noEmit: true,
  types: ['node'],
}

test('the published types are enough to compile it, strictly', () => {
  const settings = { compilerOptions: COMPILER_OPTIONS }
  const folder = project({ 'example.ts': theExample(), 'tsconfig.json': JSON.stringify(settings) })
  expect(run(folder, join(BIN, 'tsc'), '-p', '.')).toEqual({ status: 0, stdout: '', stderr: '' })
})

test('what a published page leads to is in the published package, and so is every page that a message names', () => {
  const pages = readdirSync(installed(), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))
  const links = pages
    .map((path) => ({ path, text: readFileSync(join(installed(), path), 'utf8') }))
    .flatMap((page) => linksIn(page))
  const nowhere = links.filter(({ path }) => !existsSync(join(installed(), path)))
  expect(nowhere.map(({ place, path }) => `${place}: ${path}`)).toEqual([])
  const inCode = readdirSync(join(installed(), 'dist'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.js'))
    .flatMap((name) => readFileSync(join(installed(), 'dist', name), 'utf8').match(/\bdocs\/[\w/-]+\.md\b/g) ?? [])
  expect(inCode.filter((path) => !existsSync(join(installed(), path)))).toEqual([])
  expect(links.map(({ path }) => path)).toContain('docs/first-ten-minutes.md')
  expect(pages.length).toBeGreaterThan(20)
  expect(inCode.length).toBeGreaterThan(0)
})

test('the published package needs nothing that it does not ask for', () => {
  const manifest = JSON.parse(readFileSync(join(installed(), 'package.json'), 'utf8')) as Record<string, object>
  const asked = Object.keys({ ...manifest['dependencies'], ...manifest['peerDependencies'] })
  const files = readdirSync(join(installed(), 'dist'), { recursive: true, encoding: 'utf8' })
  const imports = files
    .filter((name) => /\.(js|d\.ts)$/.test(name))
    .flatMap((name) => [
      ...readFileSync(join(installed(), 'dist', name), 'utf8').matchAll(/^(?:im|ex)port\b.*?\bfrom "([^".][^"]*)"/gm),
    ])
    .map((match) => match[1]!)
  const packages = imports.map((name) =>
    name
      .split('/')
      .slice(0, name.startsWith('@') ? 2 : 1)
      .join('/'),
  )
  expect([...new Set(packages)].filter((name) => !name.startsWith('node:') && !asked.includes(name))).toEqual([])
  expect(packages).toContain('commander')
})

const CONFIG = `
import { writeFile } from 'node:fs/promises'
import { defineAgent, defineTool } from 'holdfast'
import { scriptedModel } from 'holdfast/testing'
import { z } from 'zod'

const note = defineTool({
  name: 'note',
  description: 'Append one entry',
  effect: 'write',
  input: z.object({ entry: z.string() }),
  run: ({ entry }, signal) => writeFile('ledger.txt', entry + '\\n', { flag: 'a', signal }),
})
const toolCalls = [{ tool: 'note', input: { entry: 'milk' } }]
const model = scriptedModel({ replies: [{ toolCalls }, { text: 'It is written.' }] })

export default {
  agents: { clerk: { model, tools: ['note'] }, other: defineAgent({ name: 'other', model, tools: [note] }) },
  tools: { note },
  policy: [{ tool: 'note', decision: 'allow' }],
}
`

describe.each([
  ['the package beside it', true],
  ['a Holdfast that is installed elsewhere, from its sources', false],
])('a configuration with functions, read by %s', (_name, linked) => {
  test.each(['clerk', 'other'])('its agent %s uses them', (agent) => {
    const folder = project({ 'holdfast.config.ts': CONFIG }, linked)
    const program = join(linked ? join(folder, 'node_modules/holdfast') : ROOT, 'bin/holdfast')
    const ended = run(folder, program, '--config', 'holdfast.config.ts', 'send', '--agent', agent, '--wait', 'Write.')
    expect({ ...ended, stderr: '' }).toEqual({ status: 0, stdout: 'It is written.\n', stderr: '' })
    expect(ledgerIn(folder)).toBe('milk\n')
  })
})

test('a mistake in such a configuration is named, with its place and remedy', () => {
  const wrong = CONFIG.replace('tools: { note }', 'tools: { remark: note }')
  const folder = project({ 'holdfast.config.ts': wrong })
  const ended = run(folder, join(ROOT, 'bin/holdfast'), '--config', 'holdfast.config.ts', 'status')
  expect(ended.status).toBe(2)
  expect(ended.stderr).toContain('"tools.remark" is the tool "note"; write it under its own name')
})

describe('as it would be published', () => {
  test('it is small, asks for few others, runs nothing when it is installed, and its exports and types are right', async () => {
    expect(await problemsOf(join(built, TARBALL))).toEqual([])
  })

  test('a package with mistakes is found out', async () => {
    const folder = temporaryFolder()
    const exports = { '.': { types: './index.d.ts', default: './none.js' } }
    const scripts = { postinstall: 'true' }
    mkdirSync(join(folder, 'package'))
    writeFileSync(
      join(folder, 'package/package.json'),
      JSON.stringify({ name: 'wrong', version: '1.0.0', type: 'module', exports, scripts }),
    )
    execFileSync('tar', ['-czf', 'wrong.tgz', 'package'], { cwd: folder })
    const problems = await problemsOf(join(folder, 'wrong.tgz'))
    expect(problems).toContainEqual('it has the script "postinstall"')
    expect(problems).toContainEqual(expect.stringMatching(/^publint: .*none\.js/))
    expect(problems).toContainEqual(expect.stringMatching(/^are the types wrong/))
  })
})

/** Files cost more than what is in them, and their number is the same on every machine; the time is not, so it is only told. */
const LOADS = `
  const { registerHooks } = await import('node:module')
  let files = 0
  registerHooks({ load: (url, context, next) => { files += url.startsWith('file:') ? 1 : 0; return next(url, context) } })
  const before = process.cpuUsage()
  await import(process.argv[1])
  const { user, system } = process.cpuUsage(before)
  console.log(JSON.stringify({ files, ms: (user + system) / 1_000 }))`

const median = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!

function loading(folder: string, name: string): { readonly files: number; readonly ms: number } {
  const times = Array.from({ length: 3 }, () => {
    const { stdout, stderr } = run(folder, process.execPath, '--input-type=module', '-e', LOADS, name)
    expect(stderr).toBe('')
    return JSON.parse(stdout) as { files: number; ms: number }
  })
  return { files: times[0]!.files, ms: median(times.map(({ ms }) => ms)) }
}

test('the root is loaded from a handful of files, and so is the command line', () => {
  const folder = project({})
  const root = loading(folder, 'holdfast')
  const commandLine = loading(folder, join(installed(), 'dist/cli/main.js'))
  console.log(`import of the root: ${root.ms.toFixed(0)} ms of a processor (aim: 60), ${root.files} files`)
  console.log(`the command line: ${commandLine.ms.toFixed(0)} ms of a processor, ${commandLine.files} files`)
  expect(root.files).toBeLessThanOrEqual(8)
  expect(commandLine.files).toBeLessThanOrEqual(12)
  // Three times the aim: a processor may be that much slower than the one that it was set on.
  expect(root.ms).toBeLessThan(180)
})

const READING = `
  const { createRuntime } = await import('holdfast')
  const runtime = await createRuntime({ home: 'home', agents: [] })
  const waiting = await runtime.inbox('nobody')
  await runtime.close()
  const slow = ['crypto', 'child_process', 'http', 'worker_threads']
  console.log(JSON.stringify({ waiting, loaded: slow.filter((name) => process.moduleLoadList.includes('NativeModule ' + name)) }))
`

test('whoever only reads what waits loads nothing of what carries runs out, and makes no id', () => {
  const folder = project({ 'read.mjs': READING })
  // The first makes the database.
  expect(run(folder, process.execPath, 'read.mjs')).toMatchObject({ status: 0, stderr: '' })
  expect(run(folder, process.execPath, 'read.mjs')).toEqual({
    status: 0,
    stderr: '',
    stdout: '{"waiting":[],"loaded":[]}\n',
  })
})

const CALLING = `
  const { createRuntime, defineFunction } = await import('holdfast')
  const double = defineFunction('double', ({ input }) => input * 2)
  const runtime = await createRuntime({ home: 'home', agents: [double] })
  await runtime.start()
  const doubled = await (await runtime.call({ function: 'double', input: 21 })).result()
  const slow = ['child_process', 'dgram', 'dns', 'http']
  const loaded = slow.filter((name) => process.moduleLoadList.includes('NativeModule ' + name))
  await runtime.close()
  console.log(JSON.stringify({ doubled, loaded }))
`

test('a program of functions alone loads nothing that starts processes or asks other machines', () => {
  const folder = project({ 'call.mjs': CALLING })
  expect(run(folder, process.execPath, 'call.mjs')).toEqual({
    status: 0,
    stderr: '',
    stdout: '{"doubled":42,"loaded":[]}\n',
  })
})

test('what is loaded is written in ASCII: with one letter more, a file takes twice its room in memory', () => {
  const dist = join(installed(), 'dist')
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'))
  expect(files.length).toBeGreaterThan(50)
  expect(files.filter((name) => /[\u0080-\uffff]/.test(readFileSync(join(dist, name), 'utf8')))).toEqual([])
})

const PEERS = `
  const { registerHooks } = await import('node:module')
  const loaded = new Set()
  const peer = /node_modules\\/(ai|@ai-sdk\\/[^/]+|@opentelemetry\\/[^/]+|pg)\\//
  registerHooks({ load: (url, context, next) => { loaded.add(peer.exec(url)?.[1] ?? ''); return next(url, context) } })
  await import(process.argv[1])
  loaded.delete('')
  console.log(JSON.stringify([...loaded].toSorted()))`

test('the root loads no optional peer; holdfast/ai-sdk loads its own, and is enough for a loop and its types', () => {
  // The types of the AI SDK itself are not written for the strictest of compilers.
  const settings = { compilerOptions: { ...COMPILER_OPTIONS, skipLibCheck: true } }
  const folder = project({ 'example.ts': programOf('docs/ai-sdk.md'), 'tsconfig.json': JSON.stringify(settings) })
  for (const name of ['ai', '@ai-sdk'])
    symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
  const peersOf = (name: string) => {
    const { stdout, stderr } = run(folder, process.execPath, '--input-type=module', '-e', PEERS, name)
    expect(stderr).toBe('')
    return JSON.parse(stdout) as string[]
  }
  expect(peersOf('holdfast')).toEqual([])
  expect(peersOf('holdfast/ai-sdk')).toContain('ai')
  expect(run(folder, process.execPath, 'example.ts')).toEqual({ status: 0, stdout: 'It is paid back.\n', stderr: '' })
  expect(run(folder, join(BIN, 'tsc'), '-p', '.')).toEqual({ status: 0, stdout: '', stderr: '' })
})

test('a command starts in little more than the time that Node takes', () => {
  const folder = project({})
  const cost = (...args: readonly string[]) =>
    median(
      Array.from({ length: 3 }, () => {
        const { stdout } = run(
          folder,
          'bash',
          '-c',
          'times=$(TIMEFORMAT="%U %S"; { time "$@" >/dev/null; } 2>&1); echo "$times"',
          'bash',
          ...args,
        )
        return stdout.split(' ').reduce((sum, part) => sum + Number(part), 0)
      }),
    )
  const node = cost(process.execPath, '-e', '0')
  const version = cost(process.execPath, join(installed(), 'bin/holdfast'), '--version')
  console.log(`holdfast --version: ${(version / node).toFixed(2)} times node -e 0 (aim: 2)`)
  expect(version / node).toBeLessThan(3)
})

/** From npm's own cache where it has everything, else from the registry; on a machine that has neither it cannot be tried. */
function npmInstall(folder: string): boolean {
  const env = { ...process.env, PATH }
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', join(built, TARBALL)]
  return ['--offline', '--fetch-retries=1'].some((way) => {
    const { status } = spawnSync('npm', [...args, way], { cwd: folder, env, encoding: 'utf8', timeout: 100_000 })
    return status === 0
  })
}

test(
  'npm installs it into an empty folder, and the command and the root work from there',
  { timeout: 240_000 },
  ({ skip }) => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
    skip(!npmInstall(folder), 'npm reaches neither its cache nor a registry')
    const holdfast = (...args: readonly string[]) => run(folder, join(folder, 'node_modules/.bin/holdfast'), ...args)
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
    expect(holdfast('--version')).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' })
    expect(holdfast('run', '--', 'echo', 'hello')).toMatchObject({ status: 0, stdout: 'hello\n' })
    expect(holdfast('init').stdout).toContain('\n  holdfast up ')
    const told = holdfast('init', 'other', '--model', 'openai/gpt-5.5').stdout
    expect(told).toMatch(/npm install --prefix \S+other @ai-sdk\/openai@4 [^]*export OPENAI_API_KEY=/)
    expect(holdfast('--json', 'doctor').status).toBe(0)
    const imported = run(
      folder,
      process.execPath,
      '--input-type=module',
      '-e',
      `console.log(typeof (await import('holdfast')).createRuntime)`,
    )
    expect(imported).toEqual({ status: 0, stdout: 'function\n', stderr: '' })
  },
)
