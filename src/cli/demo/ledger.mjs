// A ledger for the demo, as any program could keep one: it knows nothing of Holdfast but the key in its environment.
//   append FILE   writes the entry and reports. While FILE.ENTRY.half is there it stops in the middle of the entry, while
//                 FILE.ENTRY.silent is there before it reports: so that there is a moment in which it can be killed
//   probe FILE    says whether the entry with this key is there
// The input comes on standard input: { "entry": "one" }. Each line: ENTRY KEY.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'

const LONGEST_PAUSE_MS = 60_000

const [, , verb, file] = process.argv
const key = process.env.HOLDFAST_ACTION_KEY
const { entry } = JSON.parse(readFileSync(0, 'utf8'))

async function pauseWhile(path) {
  const start = performance.now()
  while (existsSync(path) && performance.now() - start < LONGEST_PAUSE_MS) await wait(20)
}

if (verb === 'probe') {
  const there = readFileSync(file, 'utf8').includes(` ${key}\n`)
  process.stdout.write(JSON.stringify(there ? { outcome: 'done', result: { entry } } : { outcome: 'not_done' }))
} else {
  const middle = existsSync(`${file}.${entry}.half`) ? Math.ceil(entry.length / 2) : 0
  appendFileSync(file, entry.slice(0, middle), { flush: true })
  await pauseWhile(`${file}.${entry}.half`)
  appendFileSync(file, `${entry.slice(middle)} ${key}\n`, { flush: true })
  await pauseWhile(`${file}.${entry}.silent`)
  process.stdout.write(JSON.stringify({ entry }))
}
