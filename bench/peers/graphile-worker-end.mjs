// graphile-worker, whose result is seen when its job's end is on disk: its own event, which the peer's adapter waits for, comes before
// that is asked for. In W2 one job is under way at a time, so the next end that is committed is its own.
import pg from 'pg'

import peer from './graphile-worker.mjs'

let told = Promise.withResolvers()
// oxlint-disable-next-line typescript/unbound-method -- it is called on the client
const query = pg.Client.prototype.query
pg.Client.prototype.query = function (config, ...rest) {
  const answered = query.call(this, config, ...rest)
  if (config?.name?.startsWith('complete_job') || /^\s*delete from \S+_private_jobs/.test(config?.text ?? ''))
    answered?.then(() => told.resolve())
  return answered
}

export default {
  ...peer,
  title: 'graphile-worker (Postgres), its end on disk',
  limit: true,
  na: Object.fromEntries(['w1c1', 'w1c64', 'w3', 'w4', 'w5', 'w6'].map((w) => [w, 'see graphile-worker'])),
  async open(options) {
    const worker = await peer.open(options)
    return {
      ...worker,
      async run(id, steps) {
        told = Promise.withResolvers()
        await worker.run(id, steps)
        await told.promise
      },
    }
  },
}
