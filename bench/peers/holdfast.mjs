// Holdfast, on SQLite (this file) or on PostgreSQL (holdfast-pg.mjs), by its public library alone. A workflow is a call of
// a function, its steps are `run.step`: intent on disk, body, outcome on disk, an event for each, the claim checked by its
// fence. Nothing is set for the benchmark but how many functions are at work at once and how many calls may wait.
//
// What a workload needs is loaded by that workload: W6 measures a program that loads only what it uses, and whoever reads one
// message reads no files and knows no pools.
const { readFileSync } = process.getBuiltinModule('fs')
const lib = (name) => import(`../lib/${name}.mjs`)

const TOGETHER = 256

/** W5: the bodies' own file says which of them ran; its name is in the arguments of the case. */
function ranBefore() {
  const side = JSON.parse(process.argv[4] ?? '{}').side
  if (side === undefined) return undefined
  let known
  return (line) => (known ??= new Set(readFileSync(side, 'utf8').split('\n'))).has(line)
}

export function make({ onPg }) {
  const home = () => `${onPg ? process.env.BENCH_TMP : process.env.BENCH_DIR}/holdfast`
  const place = () => ({ home: home(), ...(onPg ? { store: process.env.BENCH_PG } : {}) })
  const connect = async ({ step, job, lease } = {}) => {
    const { createRuntime, defineFunction } = await import('holdfast')
    const ran = ranBefore()
    const flow = defineFunction('flow', async (run) => {
      const { id, steps } = run.input
      for (let i = 0; i < steps; i++) {
        const probe = ran && {
          probe: () => (ran(`${id}/${i}`) ? { outcome: 'done', result: { ok: i } } : { outcome: 'not_done' }),
        }
        await run.step(`s${i}`, () => step(id, i), probe)
      }
      return id
    })
    const work = defineFunction('job', (run) => void job(run.input.id, run.input.at))
    const options = { capacity: { backlog: 10_000_000 }, ...(lease ? { lease: `${lease}s` } : {}) }
    return createRuntime({ ...place(), agents: [flow, work], ...options })
  }
  const open = {
    async db() {
      if (onPg) return (await lib('pg')).pool(2)
      const { DatabaseSync } = await import('node:sqlite')
      return new DatabaseSync(`${home()}/holdfast.db`, { readOnly: true, timeout: 5000 })
    },
  }
  const unfinishedSql = `select count(*) n from ${onPg ? 'holdfast.runs' : 'runs'} where state in ('queued', 'running', 'parked')`
  return {
    title: onPg ? 'Holdfast (PostgreSQL)' : 'Holdfast (SQLite)',
    service: onPg ? 'postgres' : 'none',
    pkgs: ['holdfast'],
    durability: onPg ? 'Postgres synchronous_commit=on fsync=on' : 'journal_mode=WAL synchronous=FULL',
    notes: {
      w1: 'run.step as a write: its intent is committed before the body, its outcome with the intent of the next',
      w3: 'runtime.call, and runtime.callAll for the bulk; one worker, 64 functions at once',
      w4: 'schedules.add with a function',
      w5: 'each step is a write with a probe that asks the file of the bodies; lease 5 s (default 15 s)',
      w6: 'createRuntime, runtime.inbox of a thread',
    },
    async setup() {
      await (await connect()).close()
    },
    async open({ worker, concurrency, lease, step, job }) {
      const runtime = await connect({ step, job, lease })
      const startWorker = () => runtime.start({ calls: concurrency })
      if (worker) await startWorker()
      let db
      return {
        startWorker,
        run: async (id, steps) => (await runtime.call({ function: 'flow', input: { id, steps } })).result(),
        submit: (id, steps) => runtime.call({ function: 'flow', input: { id, steps } }),
        enqueueOne: (i) => runtime.call({ function: 'job', input: { id: `j${i}`, at: 0 } }),
        enqueueMany: (n, from) =>
          runtime.callAll(
            Array.from({ length: n }, (_, i) => ({ function: 'job', input: { id: `j${from + i}`, at: 0 } })),
          ),
        schedule: async (items) =>
          (await lib('util')).each(items.length, TOGETHER, (k) =>
            runtime.schedules.add({ name: items[k].id, at: new Date(items[k].at), function: 'job', input: items[k] }),
          ),
        seedFar: async (n) => {
          const day = Date.now() + 86_400_000
          return (await lib('util')).each(n, TOGETHER, (i) =>
            runtime.schedules.add({
              name: `far${i}`,
              at: new Date(day + i * 100),
              function: 'job',
              input: { id: `far${i}`, at: 0 },
            }),
          )
        },
        async unfinished() {
          db ??= await open.db()
          return onPg ? (await lib('pg')).count(db, unfinishedSql) : db.prepare(unfinishedSql).get().n
        },
        async close() {
          await runtime.close()
          await (onPg ? db?.end() : db?.close())
        },
      }
    },
    async seedCold() {
      const { createRuntime, defineAgent } = await import('holdfast')
      // Never asked: a thread belongs to an agent, and W6 reads what waits for it.
      const reader = defineAgent({
        name: 'reader',
        model: { id: 'nobody', quota: 'none', generate: () => Promise.reject(new Error('asked')) },
      })
      const runtime = await createRuntime({ ...place(), agents: [reader] })
      await runtime.send({ agent: 'reader', threadId: 'cold', text: 'a message' })
      await runtime.close()
    },
    async cold() {
      const { createRuntime } = await import('holdfast')
      const runtime = await createRuntime({ ...place(), agents: [] })
      const [waiting] = await runtime.inbox('cold')
      if (waiting === undefined) throw new Error('no message')
      await runtime.close()
    },
  }
}

export default make({ onPg: false })
