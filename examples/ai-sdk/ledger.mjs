// A shop that knows nothing of the program that orders from it: one synced line for each order.
//   node ledger.mjs append FILE KEY WHAT   node ledger.mjs find FILE KEY
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'

const [, , verb, file, key, what] = process.argv
const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
if (verb === 'append') {
  const ledger = openSync(file, 'a')
  writeSync(ledger, `${key} ${what}\n`)
  fsyncSync(ledger)
  closeSync(ledger)
}
if (verb === 'find') process.stdout.write(lines.some((line) => line.startsWith(`${key} `)) ? 'found' : 'none')
