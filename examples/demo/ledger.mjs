// A harmless ledger for the demo agent: one synced line for each entry, in the home folder.
//   append   appends the entry
//   probe    says whether an append with this key happened
// Input is JSON on standard input; HOLDFAST_ACTION_KEY names the action, the same at every re-try of it.
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folder = process.env.HOLDFAST_HOME ?? join(tmpdir(), 'holdfast-demo')
const path = join(folder, 'demo-ledger.jsonl')
const key = process.env.HOLDFAST_ACTION_KEY
let input = ''
for await (const chunk of process.stdin) input += chunk
const { entry } = JSON.parse(input)

const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
const number = lines.findIndex((line) => line.includes(JSON.stringify(key))) + 1

if (process.argv[2] === 'probe') {
  const outcome = number > 0 ? { outcome: 'done', result: { number } } : { outcome: 'not_done' }
  process.stdout.write(JSON.stringify(outcome))
} else {
  mkdirSync(folder, { recursive: true })
  const ledger = openSync(path, 'a', 0o600)
  writeSync(ledger, `${JSON.stringify({ key, at: new Date().toISOString(), entry })}\n`)
  fsyncSync(ledger)
  closeSync(ledger)
  process.stdout.write(JSON.stringify({ number: lines.length + 1, ledger: path }))
}
