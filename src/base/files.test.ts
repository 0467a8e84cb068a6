import { execFile, execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { createFileOnce, ensureFolder, replaceFile, writeFileAtomic } from './files.ts'

const root = mkdtempSync(join(tmpdir(), 'holdfast-files-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(root, 'f-'))
})

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

test('a file is replaced as a whole and nothing else is left in the folder [R7]', async () => {
  await writeFileAtomic(join(folder, 'a'), 'one')
  await writeFileAtomic(join(folder, 'a'), Buffer.from('two'))
  expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('two')
  expect(readdirSync(folder)).toEqual(['a'])
})

test('a new file is private, an existing one keeps its mode, a given mode wins [R7]', async () => {
  await writeFileAtomic(join(folder, 'new'), '')
  writeFileSync(join(folder, 'old'), '')
  chmodSync(join(folder, 'old'), 0o664)
  await writeFileAtomic(join(folder, 'old'), 'x')
  await writeFileAtomic(join(folder, 'given'), '', { mode: 0o755 })
  expect(['new', 'old', 'given'].map((name) => modeOf(join(folder, name)))).toEqual(['600', '664', '755'])
})

test("somebody else's file is replaced or removed only as long as it says what was read of it [R7]", async () => {
  const path = join(folder, 'theirs')
  writeFileSync(path, 'read')
  chmodSync(path, 0o640)
  expect(await replaceFile(path, Buffer.from('read'), 'ours')).toBe('replaced')
  expect([readFileSync(path, 'utf8'), modeOf(path)]).toEqual(['ours', '640'])
  expect(await replaceFile(path, Buffer.from('read'), 'again')).toBe('changed')
  expect(await replaceFile(path, Buffer.from('read'), undefined)).toBe('changed')
  expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual(['ours', ['theirs']])
  expect(await replaceFile(path, Buffer.from('ours'), undefined)).toBe('replaced')
  expect(readdirSync(folder)).toEqual([])
  expect(await replaceFile(path, Buffer.from('ours'), 'x')).toBe('changed')
})

test('the bytes are on disk before they have their name, and the name before it is told [R7] [durable/acknowledged]', async () => {
  const path = join(folder, 'a')
  const handle = await open(folder)
  const kind = Object.getPrototypeOf(handle) as FileHandle
  await handle.close()
  const synced: unknown[] = []
  const { value: sync } = Object.getOwnPropertyDescriptor(kind, 'sync') as { value: FileHandle['sync'] }
  onTestFinished(() => void (kind.sync = sync))
  kind.sync = async function record(this: FileHandle) {
    const [isFolder, bytes] = [(await this.stat()).isDirectory(), (await this.stat()).size]
    await sync.call(this)
    synced.push(isFolder ? { named: existsSync(path) } : { bytes, named: existsSync(path) })
  }
  await writeFileAtomic(path, 'words')
  expect(synced).toEqual([{ bytes: 5, named: false }, { named: true }])
  rmSync(path)
  await createFileOnce(path, 'words')
  expect(synced.slice(2)).toEqual([{ bytes: 5, named: false }, { named: true }])
  await writeFileAtomic(path, 'words', { durable: false })
  expect(synced.slice(4)).toEqual([])
})

test('a failed write leaves the old file and no litter [R7]', async () => {
  mkdirSync(join(folder, 'target', 'in the way'), { recursive: true })
  await expect(writeFileAtomic(join(folder, 'target'), 'x')).rejects.toThrow('EISDIR')
  expect(readdirSync(folder)).toEqual(['target'])
})

test('of many creators exactly one creates, and nobody sees half a file', async () => {
  const path = join(folder, 'once')
  const outcomes = await Promise.all(Array.from({ length: 20 }, (_, n) => createFileOnce(path, `by ${n}`)))
  expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(1)
  expect(readFileSync(path, 'utf8')).toBe(`by ${outcomes.indexOf('created')}`)
  expect(readdirSync(folder)).toEqual(['once'])
})

test('three racing processes never tear a file [R7]', async () => {
  const path = join(folder, 'raced')
  await writeFileAtomic(path, 'x'.repeat(100_000))
  const program = `
    import { writeFileAtomic } from ${JSON.stringify(new URL('./files.ts', import.meta.url).href)}
    for (let n = 0; n < 50; n += 1) await writeFileAtomic(process.argv[2], process.argv[1].repeat(100_000))`
  const write = (letter: string) =>
    promisify(execFile)(process.execPath, ['--input-type=module-typescript', '-e', program, letter, path])
  const state = { writing: true }
  const writers = Promise.all(['a', 'b', 'c'].map(write)).finally(() => (state.writing = false))
  let reads = 0
  while (state.writing) {
    expect(readFileSync(path, 'utf8')).toMatch(/^(a{100000}|b{100000}|c{100000}|x{100000})$/)
    reads += 1
    await new Promise((resolve) => setImmediate(resolve))
  }
  await writers
  expect(reads).toBeGreaterThan(10)
  expect(readdirSync(folder)).toEqual(['raced'])
})

test('a folder is made with its parents, private', async () => {
  const deep = join(folder, 'a', 'b', 'c')
  await ensureFolder(deep)
  await ensureFolder(deep)
  expect([join(folder, 'a'), deep].map(modeOf)).toEqual(['700', '700'])
})

test('a file where a folder should be is called that', async () => {
  const file = join(folder, 'file')
  await writeFileAtomic(file, '')
  await expect(ensureFolder(file)).rejects.toMatchObject({
    code: 'files/not-a-folder',
    message: expect.stringContaining('is not a folder') as string,
  })
})

test.each(['n'.repeat(70_000), 'a\0b'])('what cannot be the name of a file is called that', async (name) => {
  await expect(ensureFolder(join(folder, name))).rejects.toMatchObject({
    code: 'files/no-name',
    message: expect.stringMatching(/^cannot write .{1,4200}: no file can be called that$/su) as string,
  })
})

const disk = mountTmpfs('size=64k')

describe.skipIf(disk === undefined)('on disks that refuse', () => {
  test('a full disk is named, with a remedy and without litter', async () => {
    const path = join(disk ?? '', 'big')
    await writeFileAtomic(path, 'small')
    const failure = await writeFileAtomic(path, Buffer.alloc(1_000_000)).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'files/full', remedy: expect.stringContaining('free some space') })
    expect(readdirSync(disk ?? '')).toEqual(['big'])
    expect(readFileSync(path, 'utf8')).toBe('small')
  })

  test('a read-only disk is named', async () => {
    execFileSync('mount', ['-o', 'remount,ro', disk ?? ''])
    await expect(writeFileAtomic(join(disk ?? '', 'x'), '')).rejects.toMatchObject({ code: 'files/not-writable' })
    await expect(ensureFolder(join(disk ?? '', 'y'))).rejects.toMatchObject({ code: 'files/not-writable' })
  })
})

test('too many open files are named', async () => {
  const program = `
    import { openSync } from 'node:fs'
    import { writeFileAtomic } from ${JSON.stringify(new URL('./files.ts', import.meta.url).href)}
    await writeFileAtomic(process.argv[1], 'first')
    try { for (;;) openSync('/dev/null') } catch {}
    await writeFileAtomic(process.argv[1], 'second').catch((error) => process.exit(error.code === 'files/too-many-open' ? 42 : 1))`
  const run = ['-c', 'ulimit -n 64; exec "$0" "$@"', process.execPath, '--input-type=module-typescript', '-e', program]
  const ended = promisify(execFile)('/bin/sh', [...run, join(folder, 'x')])
  await expect(ended).rejects.toMatchObject({ code: 42 })
  expect(readFileSync(join(folder, 'x'), 'utf8')).toBe('first')
})

function mountTmpfs(options: string): string | undefined {
  const point = mkdtempSync(join(root, 'disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', point], { stdio: 'pipe' })
    afterAll(() => void execFileSync('umount', ['-l', point]))
    return point
  } catch (error) {
    process.stderr.write(`full and read-only disks are not tested here, none could be mounted: ${String(error)}\n`)
    return undefined
  }
}
