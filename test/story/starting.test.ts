import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { makeProgram } from '../../src/cli/main.ts'
import { temporaryFolder } from '../support/engines.ts'
import { Installation, startProcess } from '../support/holdfast.ts'

const RECORDER = fileURLToPath(new URL('../support/fixtures/loaded-files.mjs', import.meta.url))

const COMPILED_CODE = fileURLToPath(new URL('../../bin/compiled-code.cjs', import.meta.url))

/** The sources: in what is built of them, many are one file. */
const SOURCES = fileURLToPath(new URL('../../bin/holdfast', import.meta.url))

/** Paths within the repository, or of packages within `node_modules`. */
async function filesLoadedBy(...args: string[]): Promise<string[]> {
  const list = join(temporaryFolder(), 'loaded')
  const env = { HOLDFAST_HOME: temporaryFolder(), NODE_OPTIONS: `--import=${RECORDER}`, LOADED_FILES: list }
  const { stderr } = await startProcess(SOURCES, args, env).ended
  expect(stderr).not.toContain('could not be started')
  return readFileSync(list, 'utf8')
    .split('\n')
    .filter((url) => /\/src\/|\/node_modules\//.test(url))
    .map((url) => url.replace(/.*\/(src|node_modules)\//, '$1/'))
}

// What they load is what they take to start: half a millisecond a file. Raise a number when that is what it is worth.
test.each([
  { file: 'runs/runs.ts', args: ['runs', 'list'], most: 230 },
  { file: 'threads/inbox.ts', args: ['inbox', 'list', 'thr_nobody'], most: 240 },
  { file: 'house/status.ts', args: ['status'], most: 235 },
  { file: 'runs/run.ts', args: ['run', '--', 'true'], most: 255 },
])('`holdfast $args.0` loads what it needs, and none of the large libraries', async ({ file, args, most }) => {
  const loaded = await filesLoadedBy(...args)
  expect(loaded).toContain(`src/cli/${file}`)
  expect(loaded.filter((path) => /node_modules\/(zod|hono|@hono|@modelcontextprotocol|pg)\//.test(path))).toEqual([])
  expect(loaded.filter((path) => path === 'src/cli/house/up.ts' || path.startsWith('src/server/'))).toEqual([])
  expect(loaded.length).toBeLessThan(most)
})

test('a command that is called alone is the one that the whole program has', async () => {
  const whole = await makeProgram(() => {})
  for (const command of whole.commands) {
    const alone = await makeProgram(() => {}, ['--json', command.name()])
    expect(alone.helpInformation()).toBe(whole.helpInformation())
    const found = alone.commands.find((each) => each.name() === command.name())
    expect(found?.helpInformation()).toBe(command.helpInformation())
    expect(found?.commands.length).toBe(command.commands.length)
    const asked = await makeProgram(() => {}, ['help', command.name()])
    expect(asked.commands.find((each) => each.name() === command.name())?.options.length).toBe(command.options.length)
  }
})

test('it says which version it is', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    readonly version: string
  }
  const place = new Installation()
  expect(await place.run(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  expect((await place.run(['-V'])).stdout).toBe(`${version}\n`)
  expect(await place.json(['--version'])).toEqual({ version })
  expect((await place.run(['status', '--version'])).code).toBe(2)
})

test('compiled code is kept where nobody else writes, and only where it can be', async () => {
  const folder = temporaryFolder()
  const env = { TMPDIR: folder, NODE_COMPILE_CACHE: '' }
  expect((await new Installation().run(['--version'], env)).code).toBe(0)
  expect(readdirSync(folder)).toEqual([])
  const installed = `require(${JSON.stringify(COMPILED_CODE)}).keepCompiledCode('/nowhere')
    console.log(require('module').getCompileCacheDir() ?? 'nowhere')`
  const keptIn = async (home: string) =>
    (await startProcess(process.execPath, ['-e', installed], { ...env, HOME: home }).ended).stdout.trim()
  expect(await keptIn(folder)).toContain(join(folder, '.cache', 'holdfast'))
  expect(await keptIn('/proc')).toBe('nowhere')
})
