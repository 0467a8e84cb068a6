// A ledger as a command tool, in three flavours, sharing no code with what is tested.
//   append FILE            plain: one synced line a call
//   append FILE keyed      honours HOLDFAST_ACTION_KEY: a key that is there is not written again
//   probe FILE             says whether the key is there
// Each line: ENTRY KEY. The input comes on standard input.
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'

const [, , verb, file, flavour] = process.argv
const key = process.env.HOLDFAST_ACTION_KEY
let text = ''
for await (const chunk of process.stdin) text += chunk
const { entry } = JSON.parse(text)
const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
const written = lines.some((line) => line.endsWith(` ${key}`))
if (verb === 'probe') {
  process.stdout.write(JSON.stringify(written ? { outcome: 'done', result: { entry } } : { outcome: 'not_done' }))
} else {
  if (!(flavour === 'keyed' && written)) {
    const ledger = openSync(file, 'a')
    writeSync(ledger, `${entry} ${key}\n`)
    fsyncSync(ledger)
    closeSync(ledger)
  }
  process.stdout.write(JSON.stringify({ entry }))
}
