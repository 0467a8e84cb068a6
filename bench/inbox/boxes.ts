/** Inboxes that take messages and give them out in deliveries: ours, and what the database alone would take for it. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import pg from 'pg'

import { newMessageId, newRunId } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { acknowledgeDelivery, leaseMessages } from '../../src/threads/delivery.ts'
import type { Engine, Place } from '../bench.ts'
import { newHome, openProduct } from '../product.ts'

export interface Box {
  /** Resolves when it is on disk. */
  send(): Promise<unknown>
  /** Takes a delivery and acknowledges it, both on disk; how many messages it had. */
  drain(limit: number): Promise<number>
  close(): Promise<unknown>
}

const text = 'x'.repeat(200)

/** One thread's inbox, by the transitions that every door uses. */
export async function openInbox(place: Place, engine: Engine): Promise<Box> {
  const at = await newHome(place, engine)
  const runtime = await openProduct(at.home, at.store)
  const { store, random } = runtime
  const threadId = 'inbox' as ThreadId
  return {
    send() {
      const ids = { messageId: newMessageId(random), runId: newRunId(random), threadId }
      return store.apply(sendMessage, { ...ids, agent: 'reader', text, key: ids.messageId, wakes: false })
    },
    async drain(limit) {
      const id = `dlv_${random.id()}`
      const by = { kind: 'hand' } as const
      const { messages } = await store.apply(leaseMessages, { id, threadId, by, limit, bytes: LIMITS.deliveryBytes })
      if (messages.length > 0) await store.apply(acknowledgeDelivery, id)
      return messages.length
    },
    close: () => runtime.close(),
  }
}

const COLUMNS = 'state text not null, delivery text, payload text not null'
const INDEX = `create index pending on box (id) where state = 'pending'`
let deliveries = 0

/** Sends that are made together share a commit, as they do with us. */
function grouped(commit: (count: number) => void | Promise<void>) {
  let waiting: (() => void)[] = []
  let isFlushing = false
  const flush = async () => {
    while (waiting.length > 0) {
      await new Promise((resolve) => setImmediate(resolve))
      const members = waiting
      waiting = []
      await commit(members.length)
      for (const settle of members) settle()
    }
    isFlushing = false
  }
  return () =>
    new Promise<void>((resolve) => {
      waiting.push(resolve)
      if (isFlushing) return
      isFlushing = true
      void flush()
    })
}

export function openRawSqlite(folder: string, name: string): Box {
  const database = new DatabaseSync(join(folder, `${name}.db`))
  database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 4000')
  database.exec(`create table box (id integer primary key, ${COLUMNS}) strict; ${INDEX}`)
  const insert = database.prepare(`insert into box (state, payload) values ('pending', ?)`)
  const lease = database.prepare(`update box set state = 'leased', delivery = ?
    where id in (select id from box where state = 'pending' order by id limit ?) returning payload`)
  const done = database.prepare(`update box set state = 'consumed' where delivery = ? and state = 'leased'`)
  database.exec(`create index leased on box (delivery) where state = 'leased'`)
  return {
    send: grouped((count) => {
      database.exec('begin immediate')
      for (let row = 0; row < count; row += 1) insert.run(text)
      database.exec('commit')
    }),
    async drain(limit) {
      const id = String((deliveries += 1))
      const taken = lease.all(id, limit).length
      if (taken > 0) done.run(id)
      return taken
    },
    close: async () => database.close(),
  }
}

export async function openRawPostgres(url: string, name: string): Promise<Box> {
  const open = async () => {
    const client = new pg.Client({ connectionString: url, pipeline: true })
    client.on('error', () => {})
    await client.connect()
    await client.query(`set search_path to ${name}`)
    return client
  }
  const side = new pg.Client(url)
  await side.connect()
  await side.query(`create schema ${name}; set search_path to ${name}; create table box (id bigserial primary key, ${COLUMNS}); ${INDEX};
    create index leased on box (delivery) where state = 'leased'`)
  await side.end()
  const [writer, reader] = [await open(), await open()]
  const insert = () =>
    writer.query({ name: 'i', text: `insert into box (state, payload) values ('pending', $1)`, values: [text] })
  return {
    send: grouped(async (count) => {
      if (count === 1) return void (await insert())
      await Promise.all([writer.query('begin'), ...Array.from({ length: count }, insert), writer.query('commit')])
    }),
    async drain(limit) {
      const id = String((deliveries += 1))
      const lease = `update box set state = 'leased', delivery = $1
        where id in (select id from box where state = 'pending' order by id limit $2) returning payload`
      const { rowCount } = await reader.query({ name: 'l', text: lease, values: [id, limit] })
      const done = `update box set state = 'consumed' where delivery = $1 and state = 'leased'`
      if (rowCount !== 0) await reader.query({ name: 'd', text: done, values: [id] })
      return rowCount ?? 0
    },
    close: () => Promise.all([writer.end(), reader.end()]),
  }
}
