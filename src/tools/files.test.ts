import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../base/clock.ts'
import type { ToolContext } from '../loop/ports.ts'
import { fileTools } from './files.ts'

const top = mkdtempSync(join(tmpdir(), 'holdfast-files-tool-'))
afterAll(() => rmSync(top, { recursive: true, force: true }))

let [root, outside] = ['', '']
beforeEach(() => {
  const folder = mkdtempSync(join(top, 'f-'))
  root = join(folder, 'root')
  outside = join(folder, 'outside')
  mkdirSync(join(root, 'sub', 'deep'), { recursive: true })
  mkdirSync(outside)
  writeFileSync(join(outside, 'a.txt'), 'secret')
  writeFileSync(join(root, 'sub', 'a.txt'), 'one\ntwo\nthree\n')
})

function use(name: string, input: object, signal = new AbortController().signal) {
  const tool = fileTools([root]).find((each) => each.name === `files_${name}`)
  if (tool === undefined) throw new Error(name)
  const valid = tool.validate(input)
  if ('error' in valid) throw new Error(valid.error)
  return tool.perform(valid.input, { signal, clock: systemClock } as ToolContext)
}

const failed = (error: string) => ({ kind: 'failed', error: expect.stringContaining(error) })

test('a file is read, whole or in part', async () => {
  expect(await use('read', { path: 'sub/a.txt' })).toEqual({
    kind: 'done',
    result: { text: 'one\ntwo\nthree\n', totalBytes: 14, totalLines: 4 },
  })
  expect(await use('read', { path: join(root, 'sub/a.txt'), from_line: 2, lines: 1 })).toMatchObject({
    result: { text: 'two' },
  })
})

test('what is too large to read at once is cut between characters, and said to be', async () => {
  writeFileSync(join(root, 'big'), `x${'é'.repeat(200_000)}`)
  const outcome = await use('read', { path: 'big' })
  expect(outcome).toMatchObject({ kind: 'done', result: { truncated: true, totalBytes: 400_001 } })
  expect((outcome as { result: { text: string } }).result.text).toMatch(/^xé+$/)
  writeFileSync(join(root, 'huge'), Buffer.alloc(5_000_000, 'x'))
  expect(await use('read', { path: 'huge' })).toEqual(failed('too large'))
})

test('a written file is complete, readable by others, and leaves nothing beside it', async () => {
  expect(await use('write', { path: 'new/er/b.txt', content: 'hé' })).toEqual({
    kind: 'done',
    result: { path: 'new/er/b.txt', bytes: 3 },
  })
  expect(readFileSync(join(root, 'new/er/b.txt'), 'utf8')).toBe('hé')
  expect(statSync(join(root, 'new/er/b.txt')).mode & 0o777).toBe(0o644)
  chmodSync(join(root, 'sub/a.txt'), 0o755)
  await use('write', { path: 'sub/a.txt', content: '' })
  expect(statSync(join(root, 'sub/a.txt')).mode & 0o777).toBe(0o755)
  expect(readdirSync(join(root, 'sub'))).toEqual(['a.txt', 'deep'])
})

test('the identity of a write is its path and its content, and its probe compares them', async () => {
  const tool = fileTools([root])[1]
  const [one, two] = ['1', '2'].map((content) => ({ path: 'w', content }))
  expect(JSON.stringify(tool?.identity(one))).not.toContain('"content"')
  expect(tool?.identity(one)).not.toEqual(tool?.identity(two))
  await use('write', one ?? {})
  expect(await tool?.probe?.(one, {} as ToolContext)).toMatchObject({ kind: 'done' })
  expect(await tool?.probe?.(two, {} as ToolContext)).toEqual({ kind: 'unknown' })
})

test('an edit replaces what is there exactly once', async () => {
  expect(await use('edit', { path: 'sub/a.txt', old_text: 'two', new_text: '$& 2' })).toMatchObject({ kind: 'done' })
  expect(readFileSync(join(root, 'sub/a.txt'), 'utf8')).toBe('one\n$& 2\nthree\n')
  expect(await use('edit', { path: 'sub/a.txt', old_text: 'none', new_text: '' })).toEqual(failed('is not in it'))
  expect(await use('edit', { path: 'sub/a.txt', old_text: 'e', new_text: 'E' })).toEqual(failed('3 times'))
  expect(await use('edit', { path: 'sub/a.txt', old_text: 'e', new_text: 'E', replace_all: true })).toMatchObject({
    result: { replaced: 3 },
  })
})

test('folders are listed and searched without going through links', async () => {
  symlinkSync(outside, join(root, 'way-out'))
  writeFileSync(join(root, 'binary'), 'two\0')
  expect(await use('list', {})).toMatchObject({ result: { names: ['binary', 'sub/', 'way-out@'] } })
  expect(await use('list', { path: '.', depth: 3 })).toMatchObject({
    result: { names: ['binary', 'sub/', 'sub/a.txt', 'sub/deep/', 'way-out@'] },
  })
  expect(await use('search', { text: 'TWO', ignore_case: true })).toMatchObject({
    result: { matches: [{ path: 'sub/a.txt', line: 2, text: 'two' }] },
  })
  expect(await use('search', { text: 'secret' })).toMatchObject({ result: { matches: [] } })
})

test.each([
  ['../outside/a.txt', '".." is not allowed'],
  ['sub/../../outside/a.txt', '".." is not allowed'],
  ['/etc/passwd', 'is outside of'],
  ['link.txt', 'symbolic link'],
  ['way-out/a.txt', 'symbolic link'],
  ['sub/loop/loop/a.txt', 'symbolic link'],
  ['pipe', 'is not a file'],
  ['sub', 'is not a file'],
  ['sub/none.txt', 'does not exist'],
  ['.', 'is a folder'],
  ['a\0b', 'NUL'],
])('%j is not read', async (path, words) => {
  symlinkSync(outside, join(root, 'way-out'))
  symlinkSync(join(outside, 'a.txt'), join(root, 'link.txt'))
  symlinkSync('..', join(root, 'sub', 'loop'))
  execFileSync('mkfifo', [join(root, 'pipe')])
  expect(await use('read', { path })).toEqual(failed(words))
  // Neither written, unless it is only not there yet.
  if (words !== 'does not exist') expect(await use('write', { path, content: 'x' })).toEqual(failed(''))
  expect(readFileSync(join(outside, 'a.txt'), 'utf8')).toBe('secret')
})

test('a folder with a name that only begins like the root is outside', async () => {
  mkdirSync(`${root}-evil`)
  writeFileSync(join(`${root}-evil`, 'a'), 'secret')
  expect(await use('read', { path: `${root}-evil/a` })).toEqual(failed('is outside of'))
})

// Swaps a folder for a link to the outside and back, as fast as it can.
const SWAP = `
  const { renameSync, symlinkSync, unlinkSync } = require('node:fs')
  const [sub, outside] = process.argv.slice(1)
  process.stdout.write('swapping')
  for (;;) {
    renameSync(sub, sub + '.away')
    symlinkSync(outside, sub)
    unlinkSync(sub)
    renameSync(sub + '.away', sub)
  }`

test.runIf(process.platform === 'linux')(
  'a link that is swapped in between check and use does not lead out',
  async () => {
    const stolen = join(outside, 'a.txt')
    writeFileSync(stolen, 'one secret')
    const { ino } = statSync(stolen)
    const swapper = spawn(process.execPath, ['-e', SWAP, join(root, 'sub'), outside])
    const gone = once(swapper, 'exit')
    const kinds = new Set<string>()
    try {
      await once(swapper.stdout, 'data')
      for (let round = 0; round < 400; round += 1) {
        const tried = await Promise.all([
          use('read', { path: 'sub/a.txt' }),
          use('search', { text: 'one', path: 'sub' }),
          use('edit', { path: 'sub/a.txt', old_text: 'one', new_text: 'one' }),
        ])
        expect(JSON.stringify(tried)).not.toContain('secret')
        for (const { kind } of tried) kinds.add(kind)
      }
      expect(swapper.exitCode).toBeNull()
    } finally {
      swapper.kill('SIGKILL')
      await gone
    }
    expect([readdirSync(outside), statSync(stolen).ino]).toEqual([['a.txt'], ino])
    // It met both: the folder was there, and it was a link or gone.
    expect([...kinds].toSorted()).toEqual(['done', 'failed'])
  },
  60_000,
)

test('a cancelled search ends [R3]', async () => {
  const controller = new AbortController()
  for (let n = 0; n < 300; n += 1) writeFileSync(join(root, `f${n}`), 'x')
  const searching = use('search', { text: 'x' }, controller.signal)
  controller.abort()
  expect(await searching).toEqual(failed('cancelled'))
  expect(await use('write', { path: 'late', content: '' }, controller.signal)).toEqual(failed('before it was started'))
})
