/**
 * How late firings are, and what they cost, with a million others ahead.
 *
 *   node bench/schedule/run.ts [--firings N] [--pending N] [--seconds S] [--rounds N] [--json FILE] [--check]
 *
 * Firings at random instants within some seconds, one worker on SQLite in a process of its own; once with nothing else in the
 * store and once with many schedules that lie far ahead, in turns. Lateness is the instant that the ledger gives a firing less
 * the instant that it was due; the commit follows within the group commit's own time, which is printed too.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { openSqliteStore } from '../../src/store/sqlite/store.ts'

const { values } = parseArgs({
  options: {
    firings: { type: 'string', default: '2000' },
    pending: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '3' },
    json: { type: 'string' },
    check: { type: 'boolean', default: false },
  },
})
const [firings, pending, seconds, rounds] = [values.firings, values.pending, values.seconds, values.rounds].map(Number)

interface Measured {
  readonly fired: number
  readonly p50: number
  readonly p99: number
  readonly most: number
  readonly cpuMs: number
  readonly commitMs: number
}

/** A store whose schedules lie a year ahead, written by hand: a million transactions are not what is measured. */
async function storeWith(folder: string, count: number): Promise<string> {
  const path = join(folder, `with-${count}.db`)
  await (await openSqliteStore({ path })).close()
  const database = new DatabaseSync(path)
  const far = Date.now() + 365 * 86_400_000
  const options = JSON.stringify({
    retry: { tries: 3, baseMs: 200, factor: 2, jitter: 0 },
    misfire: { policy: 'once' },
  })
  database.exec(`begin;
    with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count})
    insert into schedules (id, name, kind, state, rule, target, options, made_by, next_at, next_fire_at, created_at, updated_at)
    select printf('sch_far_%08d', n), printf('far %d', n), 'job', 'active', '{"kind":"once","at":0}', '{"kind":"agent","agent":"clerk","text":""}',
      '${options}', 'bench', ${far} + n * 7919 % 86400000, ${far} + n * 7919 % 86400000, 0, 0 from numbers where ${count} > 0;
    commit;`)
  database.close()
  return path
}

function measure(path: string): Promise<Measured> {
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('worker.ts', import.meta.url)), path, String(firings), String(seconds)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  return new Promise((resolve, reject) => {
    child.on('exit', (code) =>
      code === 0 ? resolve(JSON.parse(output) as Measured) : reject(new Error(`the worker exited with ${code}`)),
    )
  })
}

const median = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0
const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
try {
  const alone = await storeWith(folder, 0)
  const crowded = await storeWith(folder, pending!)
  const results: { alone: Measured; crowded: Measured }[] = []
  for (let round = 1; round <= rounds!; round += 1) {
    const pair = { alone: await measure(alone), crowded: await measure(crowded) }
    results.push(pair)
    for (const [name, { fired, p50, p99, most, cpuMs, commitMs }] of Object.entries(pair)) {
      console.log(
        `round ${round}, ${name.padEnd(7)}: ${fired} fired, late p50 ${p50} ms, p99 ${p99} ms, most ${most} ms; commit ${commitMs.toFixed(1)} ms; processor ${cpuMs.toFixed(0)} ms`,
      )
    }
  }
  const p99 = median(results.map(({ crowded: { p99: late } }) => late))
  const cpu = median(results.map((pair) => pair.crowded.cpuMs / pair.alone.cpuMs))
  const complete = results.every((pair) => pair.alone.fired === firings && pair.crowded.fired === firings)
  const comparisons = [
    { title: `lateness p99 with ${pending} others pending, in ms (under 50)`, value: p99, holds: p99 < 50 },
    { title: 'processor time against an empty store (at most 2)', value: cpu, holds: cpu <= 2 },
    { title: 'every one fired, once', value: complete ? 1 : 0, holds: complete },
  ]
  for (const { title, value, holds } of comparisons)
    console.log(`${holds ? 'ok ' : 'NO '} ${title}: ${value.toFixed(2)}`)
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify({ results, comparisons }, null, 2))
  if (values.check && comparisons.some(({ holds }) => !holds)) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
