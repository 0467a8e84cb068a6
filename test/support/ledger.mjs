// The independent ledger: counts effects without sharing a line of code with what is tested.
//   node ledger.mjs append FILE ENTRY [DELAY_MS|GATE]   waits, then appends one synced line; a gate is a file to wait for
import { closeSync, existsSync, fsyncSync, openSync, writeSync } from 'node:fs'

const [, , verb, file, entry, wait = '0'] = process.argv
if (verb !== 'append' || !file || !entry) {
  process.stderr.write('usage: ledger.mjs append FILE ENTRY [DELAY_MS|GATE]\n')
  process.exit(2)
}

function append() {
  const ledger = openSync(file, 'a')
  writeSync(ledger, `${entry}\n`)
  fsyncSync(ledger)
  closeSync(ledger)
  process.stdout.write(`appended ${entry}\n`)
}

const appendOnceOpen = () => (existsSync(wait) ? append() : setTimeout(appendOnceOpen, 10))
if (/^\d+$/.test(wait)) setTimeout(append, Number(wait))
else appendOnceOpen()
