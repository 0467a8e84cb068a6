import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import type { ThreadId } from '../../src/base/ids.ts'
import { Key, keyPlace } from '../../src/secrets/key.ts'
import { KnownSecrets } from '../../src/secrets/known.ts'
import { Secrets } from '../../src/secrets/secrets.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { eventsAfter, record } from '../../src/events/event.ts'
import type { Transition } from '../../src/store/transition.ts'
import { findThread, openThread } from '../../src/threads/thread.ts'
import { engines, query, temporaryFolder } from '../support/engines.ts'
import type { TestDatabase } from '../support/engines.ts'
import { KNOWN, SHAPED } from '../support/secrets.ts'

const SECRETS = [...Object.values(KNOWN), ...Object.values(SHAPED).map(({ text }) => text)]

const openSealed = async (
  { ownUrl: url }: TestDatabase,
  home: string,
  known: Readonly<Record<string, string>> = KNOWN,
) => {
  const values = Object.entries(known).map(([name, value]) => [name, { value }])
  const codec = new Secrets(keyPlace(home, undefined), new KnownSecrets(Object.fromEntries(values)))
  const store = url.startsWith('sqlite:')
    ? await openSqliteStore({ path: url.slice('sqlite:'.length), codec })
    : await openPostgresStore({ url, codec })
  onTestFinished(() => store.close())
  return { store, codec }
}

function* say(texts: readonly string[]): Transition<void> {
  for (const text of texts) yield* record({ type: 'breaker.reset', data: { text } })
}

const said = async (store: Store) =>
  (await store.read(eventsAfter, 0, 1_000)).flatMap(({ data }) => (data as { text?: string }).text ?? [])

/** What somebody would find who has the disk. */
async function stored({ ownUrl: url }: TestDatabase): Promise<Buffer> {
  if (!url.startsWith('sqlite:')) {
    const schema = new URL(url).searchParams.get('schema') ?? ''
    const rows = await query(url, `select data from ${schema}.events union all select id from ${schema}.threads`)
    return Buffer.from(rows.map(({ data }) => String(data)).join('\n'))
  }
  const folder = dirname(url.slice('sqlite:'.length))
  const files = readdirSync(folder).filter((name) => /holdfast\.db(-wal)?$/.test(name))
  return Buffer.concat(files.map((name) => readFileSync(join(folder, name))))
}

test('a key that somebody was killed in the middle of making is made by the next one, of the same process number too', () => {
  const home = temporaryFolder()
  const place = keyPlace(home, undefined)
  writeFileSync(`${place.path}.${process.pid}.tmp`, '0123')
  const sealed = new Key(place).encrypt(Buffer.from('text'))
  expect(new Key(place).decrypt(sealed)?.toString()).toBe('text')
})

for (const engine of engines) {
  test(`secrets are in no column, and everybody reads what was written (${engine.name})`, async () => {
    const database = await engine.database()
    const { store } = await openSealed(database, temporaryFolder())
    await Promise.all([...SECRETS, ...SECRETS].map((text) => store.apply(say, [`use ${text} now`])))
    expect((await said(store)).toSorted()).toEqual([...SECRETS, ...SECRETS].map((text) => `use ${text} now`).toSorted())
    const disk = await stored(database)
    for (const text of [...Object.values(KNOWN), ...Object.values(SHAPED).map(({ secret }) => secret)]) {
      expect(disk.includes(Buffer.from(text))).toBe(false)
      expect(disk.includes(Buffer.from(JSON.stringify(text).slice(1, -1)))).toBe(false)
    }
  })

  test(`what is found by a text that is secret is still found by it (${engine.name})`, async () => {
    const { store } = await openSealed(await engine.database(), temporaryFolder())
    const ids = SECRETS.map((text) => `about ${text}` as ThreadId)
    await Promise.all(ids.map((id) => store.apply(openThread, id, 'clerk', null)))
    await Promise.all(ids.map((id) => store.apply(openThread, id, 'clerk', null)))
    for (const id of ids) expect((await store.read(findThread, id))?.id).toBe(id)
  })

  test(`a token that was copied from the database comes back as text, and never with its value (${engine.name})`, async () => {
    const { store, codec } = await openSealed(await engine.database(), temporaryFolder())
    const copied = SECRETS.map((text) => codec.seal(text))
    await store.apply(say, copied)
    expect(await said(store)).toEqual(copied)
    // And once more, as a child that reads what it wrote and says it again.
    await store.apply(say, await said(store))
    expect(await said(store)).toEqual([...copied, ...copied])
  })

  test(`who does not know a value reads its name, and writes it back unharmed (${engine.name})`, async () => {
    const database = await engine.database()
    const home = temporaryFolder()
    const { store: knowing } = await openSealed(database, home)
    await knowing.apply(say, [`use ${KNOWN['PLAIN_TOKEN']}`])
    const { store: blind, codec } = await openSealed(database, home, {})
    const [text = ''] = await said(blind)
    expect(codec.redact(text)).toBe('use [secret PLAIN_TOKEN]')
    await blind.apply(say, [text])
    expect(await said(knowing)).toEqual([`use ${KNOWN['PLAIN_TOKEN']}`, `use ${KNOWN['PLAIN_TOKEN']}`])
  })
}
