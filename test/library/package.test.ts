import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { temporaryFolder } from '../support/engines.ts'
import { blocksIn } from '../tidy/docs.ts'
import { ROOT, readSource } from '../tidy/tree.ts'

const BIN = join(ROOT, 'node_modules/.bin')
const PATH = [dirname(process.execPath), process.env['PATH']].join(':')

/** The package as npm would publish it, built from these sources in a folder of its own. */
function pack(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-package-'))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  for (const name of ['src', 'bin', 'package.json', 'tsconfig.json', 'tsdown.config.ts', 'CHANGELOG.md', 'LICENSE']) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  }
  execFileSync(join(BIN, 'tsdown'), ['--log-level', 'error'], { cwd: folder, env: { ...process.env, PATH } })
  const packing = ['pack', '--ignore-scripts', '--json', '--silent']
  const listed = execFileSync('npm', packing, { cwd: folder, encoding: 'utf8', env: { ...process.env, PATH } })
  const packed = JSON.parse(listed) as { filename: string }[] | Record<string, { filename: string }>
  execFileSync('tar', ['-xzf', join(folder, Object.values(packed)[0]!.filename)], { cwd: folder })
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

const theExample = () =>
  blocksIn(readSource('README.md')).find(({ language, marks }) => language === 'ts' && marks.includes('run'))!.text

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

test('the published types are enough to compile it, strictly', () => {
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2024',
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    types: ['node'],
  }
  const folder = project({ 'example.ts': theExample(), 'tsconfig.json': JSON.stringify({ compilerOptions }) })
  expect(run(folder, join(BIN, 'tsc'), '-p', '.')).toEqual({ status: 0, stdout: '', stderr: '' })
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
