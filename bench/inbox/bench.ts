import { LIMITS } from '../../src/base/limits.ts'
import { beside, defineBench, median } from '../bench.ts'
import type { Engine, Place, Row } from '../bench.ts'
import { openInbox, openRawPostgres, openRawSqlite } from './boxes.ts'
import type { Box } from './boxes.ts'

/** So many senders at once, and one reader beside them; messages a second from the first send to the last acknowledgement. */
async function throughput(box: Box, senders: number, messages: number): Promise<number> {
  const from = performance.now()
  let drained = 0
  const reader = async () => {
    while (drained < messages) {
      const taken = await box.drain(LIMITS.messagesPerTurn)
      drained += taken
      // Nobody looks into an empty inbox in a loop: whoever waits is woken by the commit.
      if (taken === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }
  const sender = async () => {
    for (let sent = 0; sent < messages / senders; sent += 1) await box.send()
  }
  await Promise.all([reader(), ...Array.from({ length: senders }, sender)])
  return messages / ((performance.now() - from) / 1_000)
}

async function measure(place: Place, engine: Engine, senders: number, messages: number, rounds: number): Promise<Row> {
  const name = `raw_inbox_${senders}`
  const ours = await openInbox(place, engine)
  const raw =
    engine === 'sqlite' ? openRawSqlite(place.folder, name) : await openRawPostgres(await place.postgres(), name)
  const rates: { ours: number[]; raw: number[] } = { ours: [], raw: [] }
  for (let round = 0; round <= rounds; round += 1) {
    const [a, b] = [await throughput(ours, senders, messages), await throughput(raw, senders, messages)]
    // The first round warms.
    if (round === 0) continue
    rates.ours.push(a)
    rates.raw.push(b)
  }
  await ours.close()
  await raw.close()
  const title = `${engine === 'sqlite' ? 'SQLite' : 'PostgreSQL'}, ${senders === 1 ? '1 sender' : `${senders} senders`}: sent, leased and acknowledged`
  return beside(title, 'messages/s', median(rates.ours), median(rates.raw), { least: senders === 1 ? 0.15 : 0.05 })
}

/** Messages through one inbox while a reader empties it, beside a table that is used as a queue. */
export const bench = defineBench({
  name: 'inbox',
  what: 'messages sent and drained, one sender and 64',
  full: { alone: 600, together: 3_200, rounds: 5 },
  quick: { alone: 100, together: 1_280, rounds: 2 },
  async run({ alone, together, rounds }, place) {
    const rows: Row[] = []
    for (const engine of place.engines) {
      rows.push(await measure(place, engine, 1, alone, rounds))
      rows.push(await measure(place, engine, 64, together, rounds))
    }
    return rows
  },
})
