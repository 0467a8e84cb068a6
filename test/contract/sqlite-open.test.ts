import { fork, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { expect, onTestFinished, test } from 'vitest'

import { MIGRATIONS } from '../../src/store/migrations/index.ts'
import { OLDEST_SQLITE, refuseOldSqlite } from '../../src/store/sqlite/open.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { temporaryFolder } from '../support/engines.ts'
import { submitted } from '../support/world.ts'

const fixture = join(import.meta.dirname, 'fixtures/open-store.ts')
const aPath = () => join(temporaryFolder(), 'holdfast.db')

/** Every error tells a program what happened, and a person too, and what to do. */
const errorWith = (code: string) =>
  expect.objectContaining({
    name: 'HoldfastError',
    code,
    message: expect.stringMatching(/\w+ \w+/),
    remedy: expect.stringMatching(/\w+ \w+/),
  })

const refusalOf = (path: string) =>
  openSqliteStore({ path }).then(
    () => 'it was opened',
    (error: unknown) => error,
  )

/** The bytes of everything that lies in the folder. */
function contentOf(folder: string): Map<string, string> {
  const names = readdirSync(folder).filter((name) => statSync(join(folder, name)).isFile())
  return new Map(names.map((name) => [name, readFileSync(join(folder, name)).toString('base64')]))
}

async function aDatabase(): Promise<string> {
  const path = aPath()
  const store = await openSqliteStore({ path })
  for (let i = 0; i < 20; i++) await submitted(store)
  await store.close()
  return path
}

function change(path: string, statement: string): void {
  const raw = new DatabaseSync(path)
  raw.exec(statement)
  raw.close()
}

interface Refused {
  readonly title: string
  readonly code: string
  make(): Promise<string> | string
}

const REFUSED: readonly Refused[] = [
  {
    title: 'a database of a newer Holdfast',
    code: 'store/newer-schema',
    async make() {
      const path = await aDatabase()
      change(path, `insert into schema_migrations values (9999, 'from-the-future', 'x', 0)`)
      return path
    },
  },
  {
    title: 'a database whose migration was edited after its release',
    code: 'store/changed-migration',
    async make() {
      const path = await aDatabase()
      change(path, `update schema_migrations set checksum = 'another' where number = 1`)
      return path
    },
  },
  {
    title: 'a file that is no database',
    code: 'store/corrupt',
    make() {
      const path = aPath()
      writeFileSync(path, randomBytes(8_192))
      return path
    },
  },
  {
    title: 'a database with a damaged header',
    code: 'store/corrupt',
    async make() {
      const path = await aDatabase()
      const bytes = readFileSync(path)
      writeFileSync(path, Buffer.concat([randomBytes(100), bytes.subarray(100)]))
      return path
    },
  },
  {
    title: 'a database that was cut off',
    code: 'store/corrupt',
    async make() {
      const path = await aDatabase()
      truncateSync(path, Math.floor(statSync(path).size / 2))
      return path
    },
  },
  {
    title: 'the database of another program',
    code: 'store/foreign',
    make() {
      const path = aPath()
      change(path, `create table notes (words text); insert into notes values ('mine')`)
      return path
    },
  },
  {
    title: 'the database of a program that counts its migrations too',
    code: 'store/foreign',
    make() {
      const path = aPath()
      change(path, `create table schema_migrations (version text); insert into schema_migrations values ('1')`)
      return path
    },
  },
  {
    title: 'a folder in its place',
    code: 'store/cannot-open',
    make() {
      const path = aPath()
      mkdirSync(path)
      return path
    },
  },
]

test.each(REFUSED)('$title is refused with $code, and its bytes stay as they are', async (refused) => {
  const path = await refused.make()
  const before = contentOf(dirname(path))
  expect(await refusalOf(path)).toEqual(errorWith(refused.code))
  expect(contentOf(dirname(path))).toEqual(before)
})

test('a folder that does not exist is refused, and not made', async () => {
  const folder = temporaryFolder()
  expect(await refusalOf(join(folder, 'no/such/holdfast.db'))).toEqual(errorWith('store/no-folder'))
  expect(readdirSync(folder)).toEqual([])
})

/** Root may write anything, whatever the bits say; so it asks as nobody. */
function refusalAsNobody(path: string): unknown {
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const { stdout, stderr } = spawnSync(process.execPath, [fixture, path], { ...nobody, encoding: 'utf8' })
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout)
}

test('a file that may not be written is refused', async () => {
  const path = await aDatabase()
  chmodSync(dirname(path), 0o777)
  chmodSync(path, 0o444)
  const before = contentOf(dirname(path))
  expect(refusalAsNobody(path)).toEqual(errorWith('store/read-only'))
  expect(contentOf(dirname(path))).toEqual(before)
})

test.each([true, false])('a folder that may not be written is refused (with a database in it: %s)', async (filled) => {
  const path = filled ? await aDatabase() : aPath()
  if (filled) chmodSync(path, 0o666)
  chmodSync(dirname(path), 0o555)
  const before = contentOf(dirname(path))
  expect(refusalAsNobody(path)).toEqual(errorWith('store/read-only'))
  expect(contentOf(dirname(path))).toEqual(before)
  chmodSync(dirname(path), 0o755)
})

test('a read-only file system is refused, for root as well', async ({ skip }) => {
  const path = await aDatabase()
  const folder = dirname(path)
  const mount = (...args: string[]) => spawnSync('mount', args, { encoding: 'utf8' })
  const bound = mount('--bind', folder, folder)
  if (bound.status !== 0) {
    console.warn(`a read-only file system is not tested here: ${bound.stderr?.trim()}`)
    skip('mount does not work')
  }
  onTestFinished(() => void spawnSync('umount', ['-l', folder]))
  expect(mount('-o', 'remount,bind,ro', folder).stderr).toBe('')
  const before = contentOf(folder)
  expect(await refusalOf(path)).toEqual(errorWith('store/read-only'))
  expect(contentOf(folder)).toEqual(before)
})

test.each(['3.51.2', '3.50.99', '3.9.0', '2.99.99', undefined])(
  'SQLite %s can lose commits and is refused',
  (version) => {
    expect(() => refuseOldSqlite(version)).toThrowError(errorWith('store/old-sqlite'))
  },
)

test.each([OLDEST_SQLITE, '3.51.10', '3.52.0', '4.0.0', process.versions.sqlite])('SQLite %s is taken', (version) => {
  expect(() => refuseOldSqlite(version)).not.toThrow()
})

test('an empty file is a new database', async () => {
  const path = aPath()
  writeFileSync(path, '')
  const store = await openSqliteStore({ path })
  expect((await submitted(store)).state).toBe('queued')
  await store.close()
})

function migrationsAt(path: string): unknown[] {
  const raw = new DatabaseSync(path)
  const numbers = raw.prepare('select number from schema_migrations order by number').all()
  raw.close()
  return numbers.map(({ number }) => number)
}

test('eight stores that open a new path together all succeed, and each migration ran once', async () => {
  const path = aPath()
  const stores = await Promise.all(Array.from({ length: 8 }, () => openSqliteStore({ path })))
  await Promise.all(stores.map((store) => submitted(store)))
  await Promise.all(stores.map((store) => store.close()))
  expect(migrationsAt(path)).toEqual(MIGRATIONS.map(({ number }) => number))
})

test('eight processes that open a new path together all succeed, and each migration ran once', async () => {
  const path = aPath()
  const children = Array.from({ length: 8 }, () => fork(fixture, [path]))
  onTestFinished(() => children.forEach((child) => child.kill('SIGKILL')))
  await Promise.all(children.map((child) => once(child, 'message')))
  const answers = children.map((child) => once(child, 'message'))
  for (const child of children) child.send('go')
  expect((await Promise.all(answers)).map(([answer]) => answer)).toEqual(children.map(() => ({ opened: true })))
  expect(migrationsAt(path)).toEqual(MIGRATIONS.map(({ number }) => number))
})

test('a look for damage that meets more than it can read says so in our words', async () => {
  const path = await aDatabase()
  const store = await openSqliteStore({ path })
  onTestFinished(() => store.close())
  expect(await store.check()).toEqual([])
  // What another has changed is not answered from memory.
  change(path, `insert into capacity (scope, used) values ('a', 1); pragma wal_checkpoint(truncate)`)
  writeFileSync(path, randomBytes(statSync(path).size))
  await expect(store.check()).rejects.toEqual(errorWith('store/corrupt'))
})
