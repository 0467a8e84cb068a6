import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { newMessageId, newRunId, newThreadId } from '../../src/base/ids.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { putParkedRuns } from '../../test/support/parked.ts'
import { defineBench, median } from '../bench.ts'
import type { Place, Row } from '../bench.ts'
import { memoryOf, newHome, openProduct, pause, startDaemon, until } from '../product.ts'
import type { Home } from '../product.ts'

/** Several heartbeats of a daemon with a lease of 3 s. */
const SETTLING_MS = 4_000

/** A model that says nothing while we look. */
const SLOW = JSON.stringify({ replies: [{ text: 'done', delayMs: 600_000 }] })

/** The memory of a daemon a few heartbeats after it took up what is in its store, in MiB. */
async function daemonMemory(at: Home, workers: number, live: number): Promise<number> {
  writeFileSync(join(at.home, 'replies.json'), SLOW)
  const config = { lease: '3s', agents: { clerk: { model: 'scripted:./replies.json' } } }
  const daemon = await startDaemon(at, { config, workers })
  try {
    if (live > 0) await until(`${live} runs are live`, () => (running(at.home) === live ? true : undefined))
    await pause(SETTLING_MS)
    return memoryOf(daemon.pid)
  } finally {
    await daemon.stop()
  }
}

function running(home: string): number {
  const database = new DatabaseSync(join(home, 'holdfast.db'), { readOnly: true, timeout: 5_000 })
  const found = database.prepare(`select count(*) as n from runs where state = 'running'`).get()
  database.close()
  return Number(found?.['n'])
}

async function withParked(place: Place, parked: number): Promise<number> {
  const at = await newHome(place, 'sqlite')
  await (await openProduct(at.home)).close()
  if (parked > 0) putParkedRuns(join(at.home, 'holdfast.db'), parked)
  return daemonMemory(at, 4, 0)
}

/** Each has a thread and a conversation of its own, and waits for its model. */
async function withLive(place: Place, live: number): Promise<number> {
  const at = await newHome(place, 'sqlite')
  const runtime = await openProduct(at.home)
  const { store, random } = runtime
  await Promise.all(
    Array.from({ length: live }, () => {
      const ids = { messageId: newMessageId(random), runId: newRunId(random), threadId: newThreadId(random) }
      return store.apply(sendMessage, { ...ids, agent: 'clerk', text: 'hello', key: ids.messageId })
    }),
  )
  await runtime.close()
  return daemonMemory(at, live, live)
}

/** What Node itself takes, doing nothing. */
async function bareNode(): Promise<number> {
  const node = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
  await pause(1_000)
  const memory = memoryOf(node.pid!)
  node.kill('SIGKILL')
  return memory
}

/** A run that waits holds no memory; a live one holds its conversation. */
export const bench = defineBench({
  name: 'memory',
  what: 'the daemon idle, with parked runs, and with live ones',
  full: { parked: 10_000, live: 1_000, rounds: 3 },
  quick: { parked: 1_000, live: 100, rounds: 1 },
  async run({ parked, live, rounds }, place) {
    const [node, idle, waiting, working]: [number[], number[], number[], number[]] = [[], [], [], []]
    for (let round = 0; round < rounds; round += 1) {
      node.push(await bareNode())
      idle.push(await withParked(place, 0))
      waiting.push(await withParked(place, parked))
      working.push(await withLive(place, live))
    }
    const [raw, none, many, busy] = [node, idle, waiting, working].map(median) as [number, number, number, number]
    const memory = (name: string, value: number): Row => ({ name, value, unit: 'MiB', raw, ratio: value / raw })
    const count = (number: number) => number.toLocaleString('en-US')
    return [
      memory('daemon, idle (raw: node that does nothing)', none),
      memory(`daemon, ${count(parked)} parked runs`, many),
      {
        name: `${count(parked)} parked runs, more than idle`,
        value: many - none,
        unit: 'MiB',
        bound: { of: 'value', most: 50 },
      },
      memory(`daemon, ${count(live)} live runs`, busy),
      { name: 'a live run', value: ((busy - none) * 1024) / live, unit: 'KiB' },
    ]
  },
})
