import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'

import { finishRun } from '../../src/runs/finish.ts'
import { MIGRATIONS } from '../../src/store/migrations/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { row, text } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import { first, run, single } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'
import { query, withParameters } from '../support/engines.ts'
import { PostgresServer, freePort } from '../support/postgres-server.ts'
import { reread, running, submitted } from '../support/world.ts'
import { serverOfVersion, silentServer } from './old-server.ts'
import { freshSchema, openedStore, ownServer } from './support.ts'

const SECRET = 'open-sesame'
const HBA = `host all guarded 127.0.0.1/32 scram-sha-256
host all barred 127.0.0.1/32 reject
host all all 127.0.0.1/32 trust
`
const ROLES = `create role guarded login password '${SECRET}';
create role barred login;
create role poor login;
create role reader login superuser; alter role reader set default_transaction_read_only = on;
create role lazy login superuser; alter role lazy set synchronous_commit = off;
create role crowded login connection limit 0;`

let server: PostgresServer
let folder: string

beforeAll(async () => {
  folder = readableFolder()
  writeFileSync(join(folder, 'hba.conf'), HBA, { mode: 0o644 })
  server = await PostgresServer.create({ fsync: false, settings: { hba_file: join(folder, 'hba.conf') } })
  await server.query(ROLES)
})

afterAll(async () => {
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** By the user that the server runs as, too. */
function readableFolder(): string {
  const made = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  chmodSync(made, 0o755)
  return made
}

const as = (user: string, password = 'wrong-secret', database = 'postgres') =>
  `postgres://${user}:${password}@127.0.0.1:${server.port}/${database}`

async function databaseIn(encoding: string): Promise<string> {
  const name = `in_${encoding.toLowerCase()}`
  await server.query(`create database ${name} encoding '${encoding}' locale 'C' template template0`)
  return as('holdfast', 'wrong-secret', name)
}

const errorWith = (code: string) =>
  expect.objectContaining({
    name: 'HoldfastError',
    code,
    message: expect.stringMatching(/\w+ \w+/),
    remedy: expect.stringMatching(/\w+ \w+/),
  })

async function refusalOf(url: string): Promise<unknown> {
  try {
    await (await openPostgresStore({ url })).close()
    return 'it was opened'
  } catch (error) {
    return error
  }
}

/** Everything that a log would show of an error, its causes included. */
const shown = (error: unknown): string =>
  error instanceof Error ? `${error.message} ${String(error.stack)} ${shown(error.cause)}` : ''

const REFUSED: readonly { title: string; code: string; url: () => string | Promise<string> }[] = [
  { title: 'a wrong password', code: 'store/wrong-password', url: () => as('guarded') },
  { title: 'a user that is not let in', code: 'store/not-allowed', url: () => as('barred') },
  {
    title: 'a database that is not there',
    code: 'store/no-database',
    url: () => as('holdfast', 'wrong-secret', 'none'),
  },
  { title: 'a user who may create nothing', code: 'store/missing-rights', url: () => as('poor') },
  { title: 'a server that takes no writes', code: 'store/read-only', url: () => as('reader') },
  { title: 'a server without a free connection', code: 'store/busy', url: () => as('crowded') },
  {
    title: 'a port where nobody listens',
    code: 'store/unreachable',
    url: async () => `postgres://a:wrong-secret@127.0.0.1:${await freePort()}/x`,
  },
  {
    title: 'a port where nobody listens, by either address of a name',
    code: 'store/unreachable',
    url: async () => `postgres://a:wrong-secret@localhost:${await freePort()}/x`,
  },
  {
    title: 'an unknown host',
    code: 'store/unreachable',
    url: () => 'postgres://a:wrong-secret@no-such-host.invalid/x',
  },
  { title: 'a server that never says a word', code: 'store/unreachable', url: silentServer },
  { title: 'a server that is too old', code: 'store/old-postgres', url: () => serverOfVersion('130012') },
  { title: 'a database that lacks characters', code: 'store/encoding', url: () => databaseIn('LATIN1') },
  { title: 'TLS that the server does not speak', code: 'store/tls', url: () => `${as('holdfast')}?sslmode=require` },
  { title: 'a schema that is no name', code: 'usage/store-url', url: () => `${as('holdfast')}?schema=No%20Name` },
  { title: 'a pool that is no number', code: 'usage/store-url', url: () => `${as('holdfast')}?pool=many` },
  { title: 'a pool of one', code: 'usage/store-url', url: () => `${as('holdfast')}?pool=1` },
  { title: 'a timeout that is none', code: 'usage/duration', url: () => `${as('holdfast')}?statement_timeout=soon` },
  { title: 'an address that is none', code: 'usage/store-url', url: () => 'postgres://a:wrong-secret@:x/y' },
]

test.each(REFUSED)('$title is refused with $code, a remedy and no word of the password', async ({ code, url }) => {
  const refusal = await refusalOf(await url())
  expect(refusal).toEqual(errorWith(code))
  expect(shown(refusal)).not.toContain('wrong-secret')
})

test('the right password opens, for a user who owns the schema', async () => {
  await server.query('create schema theirs authorization guarded')
  const store = await openedStore(withParameters(as('guarded', SECRET), { schema: 'theirs' }))
  expect((await submitted(store)).state).toBe('queued')
})

test.each(['UTF8', 'SQL_ASCII'])('a database in %s keeps every character', async (encoding) => {
  const store = await openedStore(await databaseIn(encoding))
  const { run: claimed, ref } = await running(store)
  await store.apply(finishRun, ref, { state: 'succeeded', result: 'š 漢 🙂' })
  expect((await reread(store, claimed.id)).result).toBe('š 漢 🙂')
})

const migrationsOf = async (url: string) => {
  const schema = new URL(url).searchParams.get('schema')
  const rows = await query(url, `select number::int from ${schema}.schema_migrations order by number`)
  return rows.map(({ number }) => number)
}

test.each(['false', 'true'])(
  'a commit is on disk when it is told, whatever the server would do by itself (behind a pooler: %s) [R8] [durable/acknowledged]',
  async (pgbouncer) => {
    const url = withParameters(as('lazy'), { schema: `lazy_${pgbouncer}`, pgbouncer })
    const store = await openedStore(url)
    const setting = single(() =>
      first(row({ setting: text() }), sql`select current_setting('synchronous_commit') as setting`),
    )
    function* asked(): Transition<unknown> {
      yield* run(sql`update schema_migrations set name = name where number < 0`)
      return yield* setting.single()
    }
    expect([await store.apply(setting), await store.apply(asked)]).toEqual([{ setting: 'on' }, { setting: 'on' }])
  },
)

test('eight stores that open a new schema together all succeed, and each migration ran once', async () => {
  const url = await freshSchema()
  const stores = await Promise.all(Array.from({ length: 8 }, () => openedStore(url)))
  await Promise.all(stores.map((store) => submitted(store)))
  expect(await migrationsOf(url)).toEqual(MIGRATIONS.map(({ number }) => number))
})

test('four processes that open a new schema together all succeed, and each migration ran once', async () => {
  const url = await freshSchema()
  const program = join(import.meta.dirname, 'fixtures/open-postgres.ts')
  const children = Array.from({ length: 4 }, () => fork(program, [url]))
  onTestFinished(() => children.forEach((child) => child.kill('SIGKILL')))
  await Promise.all(children.map((child) => once(child, 'message')))
  const answers = children.map((child) => once(child, 'message'))
  for (const child of children) child.send('go')
  expect((await Promise.all(answers)).map(([answer]) => answer)).toEqual(children.map(() => ({ opened: true })))
  expect(await migrationsOf(url)).toEqual(MIGRATIONS.map(({ number }) => number))
})

test.each([
  ['a newer Holdfast', 'store/newer-schema', `insert into SCHEMA.schema_migrations values (9999, 'later', 'x', 0)`],
  ['an edited migration', 'store/changed-migration', `update SCHEMA.schema_migrations set checksum = 'another'`],
])('the schema of %s is refused with %s', async (_, code, change) => {
  const url = await freshSchema()
  await (await openPostgresStore({ url })).close()
  await query(url, change.replace('SCHEMA', new URL(url).searchParams.get('schema')!))
  expect(await refusalOf(url)).toEqual(errorWith(code))
})

test.each([
  ['counts its migrations too', `create table SCHEMA.schema_migrations (version text)`],
  ['has a table of the same name', `create table SCHEMA.runs (pace text)`],
])('a schema of another program, which %s, is refused and left as it is', async (_, table) => {
  const url = await freshSchema()
  const schema = new URL(url).searchParams.get('schema')!
  await query(url, `create schema ${schema}; ${table.replace('SCHEMA', schema)}`)
  const tables = () => query(url, `select tablename from pg_tables where schemaname = '${schema}'`)
  const before = await tables()
  expect(await refusalOf(url)).toEqual(errorWith('store/foreign'))
  expect(await tables()).toEqual(before)
})

test('it lives beside other tables of the same names and leaves them alone', async () => {
  const url = await freshSchema()
  await query(url, `create table if not exists public.runs (pace text); insert into public.runs values ('mine')`)
  onTestFinished(() => query(url, 'drop table public.runs').then(() => {}))
  const publicTables = `select tablename from pg_tables where schemaname = 'public' order by 1`
  const before = await query(url, publicTables)
  await submitted(await openedStore(url))
  expect(await query(url, publicTables)).toEqual(before)
  expect(await query(url, 'select * from public.runs')).toEqual([{ pace: 'mine' }])
})

test('two schemas of one database do not see each other', async () => {
  const [one, two] = [await openedStore(await freshSchema()), await openedStore(await freshSchema())]
  const { id } = await submitted(one, { key: 'k' })
  expect((await submitted(two, { key: 'k' })).id).not.toBe(id)
  await expect(reread(two, id)).rejects.toThrow('no run')
})

/** A certificate that nobody has signed, and a server that shows it; undefined where there is no openssl. */
async function tlsServer(): Promise<{ server: PostgresServer; certificate: string } | undefined> {
  const keys = readableFolder()
  onTestFinished(() => rmSync(keys, { recursive: true, force: true }))
  const [key, certificate] = [join(keys, 'server.key'), join(keys, 'server.crt')]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  const args = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', key, '-out', certificate]
  const made = spawnSync('openssl', [...args, ...subject], { encoding: 'utf8' })
  if (made.status !== 0) return undefined
  chmodSync(key, 0o600)
  if (process.getuid?.() === 0) chownSync(key, 65_534, 65_534)
  const settings = { ssl: 'on', ssl_cert_file: certificate, ssl_key_file: key }
  return { server: await ownServer({ fsync: false, settings }), certificate }
}

test('TLS is spoken where it is asked for, and a certificate that nobody vouches for is refused', async ({ skip }) => {
  const tls = await tlsServer()
  if (tls === undefined) {
    console.warn('TLS is not tested here: openssl is not installed')
    return skip('no openssl')
  }
  const encrypted = (name: string) =>
    `select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = '${name}'`
  for (const [sslmode, ssl, extra] of [
    ['disable', false, {}],
    ['no-verify', true, {}],
    ['require', true, { uselibpqcompat: 'true' }],
    ['verify-full', true, { sslrootcert: tls.certificate }],
  ] as const) {
    // A name each: the server may still be ending the connection of the one before.
    const store = await openPostgresStore({ url: tls.server.url({ sslmode, application_name: sslmode, ...extra }) })
    expect(await tls.server.query(encrypted(sslmode)), sslmode).toEqual([{ ssl }])
    await store.close()
  }
  for (const sslmode of ['require', 'verify-full']) {
    expect(await refusalOf(tls.server.url({ sslmode }))).toEqual(errorWith('store/tls'))
  }
})
