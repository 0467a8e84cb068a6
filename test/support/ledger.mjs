// The independent ledger: counts effects without sharing a line of code with what is tested.
//   node ledger.mjs append FILE ENTRY [DELAY_MS]   waits, then appends one synced line
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'

const [, , verb, file, entry, delay = '0'] = process.argv
if (verb !== 'append' || !file || !entry) {
  process.stderr.write('usage: ledger.mjs append FILE ENTRY [DELAY_MS]\n')
  process.exit(2)
}
setTimeout(() => {
  const ledger = openSync(file, 'a')
  writeSync(ledger, `${entry}\n`)
  fsyncSync(ledger)
  closeSync(ledger)
  process.stdout.write(`appended ${entry}\n`)
}, Number(delay))
