// A limit of W1, as `raw-sqlite` is one: the rows that Holdfast keeps on SQLite, by hand (rows.ts says what is left out).
import { Rows } from './rows.ts'

const home = () => `${process.env.BENCH_DIR}/holdfast`

export default {
  title: "Holdfast's rows (SQLite), by hand",
  service: 'none',
  pkgs: [],
  limit: true,
  na: Object.fromEntries(['w2', 'w3', 'w4', 'w5', 'w6'].map((workload) => [workload, 'it is a limit of W1'])),
  durability: 'journal_mode=WAL synchronous=FULL',
  /** The tables are the product's own, and so are the thread of the function and the worker. */
  async setup() {
    const { createRuntime, defineFunction } = await import('holdfast')
    const runtime = await createRuntime({ home: home(), agents: [defineFunction('flow', () => 0)] })
    await runtime.start({ calls: 1 })
    await (await runtime.call({ function: 'flow', input: {} })).result()
    await runtime.close()
  },
  async open({ step }) {
    const { DatabaseSync } = await import('node:sqlite')
    const { randomUUIDv7 } = await import('node:crypto')
    const database = new DatabaseSync(`${home()}/holdfast.db`, { enableForeignKeyConstraints: true })
    database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 4000')
    // As a worker of the product does when it starts: its log is as long as it gets, so no commit waits for the file to become longer.
    database.exec(
      'begin immediate; create table filling (what blob); insert into filling values (zeroblob(18432000)); rollback',
    )
    const { id } = database.prepare('select worker_id as id from attempts limit 1').get()
    const rows = new Rows(database, () => randomUUIDv7().replaceAll('-', ''), id)
    return { run: (flow, steps) => rows.run(flow, steps, step), close: async () => database.close() }
  },
}
