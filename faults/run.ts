/**
 * Looks for faults, and adds what it saw to faults/totals.json.
 *
 *   npm run faults -- [--method NAME[,NAME…]] [--minutes N] [--cases N] [--from S] [--seed S] [--keep N]
 *
 * `--minutes` is for each method; every two minutes, or as many as `--keep` says, it writes down how far it is. Without a seed
 * it goes on where the last campaign ended, or with `--from` elsewhere, such as in another clone whose counters are put
 * together with these (faults/merge.ts); with `--seed` it repeats that case and what follows, and adds nothing. One that is
 * ended by SIGINT or SIGTERM has counted what it was told until then.
 */
import { parseArgs } from 'node:util'

import { campaign, endWhenAsked, wasAsked } from './campaign.ts'
import { METHODS } from './methods.ts'

const { values } = parseArgs({
  options: {
    method: { type: 'string' },
    minutes: { type: 'string', default: '1' },
    cases: { type: 'string' },
    from: { type: 'string' },
    seed: { type: 'string' },
    keep: { type: 'string', default: '2' },
    help: { type: 'boolean', default: false },
    totals: { type: 'string', default: new URL('totals.json', import.meta.url).pathname },
  },
})
if (values.help) {
  console.log('npm run faults -- [--method NAME[,NAME…]] [--minutes N] [--cases N] [--from S] [--seed S] [--keep N]')
  console.log(`methods: ${Object.keys(METHODS).join(', ')}`)
  process.exit(0)
}
const settings = {
  minutes: numberOf('minutes', values.minutes),
  most: values.cases === undefined ? Number.MAX_SAFE_INTEGER : numberOf('cases', values.cases),
  from: values.from === undefined ? undefined : numberOf('from', values.from),
  repeats: values.seed === undefined ? undefined : numberOf('seed', values.seed),
  keepMinutes: numberOf('keep', values.keep),
  totals: values.totals,
}
const chosen = values.method?.split(',') ?? Object.keys(METHODS)
const unknown = chosen.filter((name) => !Object.hasOwn(METHODS, name))
if (unknown.length > 0)
  refuse(`there is no method ${unknown.join(', ')}; there are: ${Object.keys(METHODS).join(', ')}`)
if ((settings.repeats ?? settings.from) !== undefined && chosen.length > 1)
  refuse('a seed is one of a method: add --method NAME')

endWhenAsked()
let failures = 0
for (const name of chosen) {
  if (wasAsked()) break
  try {
    failures += await campaign(await METHODS[name]!(), settings)
  } catch (error) {
    // One that broke keeps nobody from the others; one that was asked to end may well break.
    if (wasAsked()) break
    console.error(`${name} broke:`, error)
    failures += 1
  }
}
process.exit(wasAsked() ? 130 : failures === 0 ? 0 : 1)

function numberOf(name: string, value: string | undefined): number {
  const number = Number(value)
  if (!(number > 0)) refuse(`--${name} must be a number above 0, not ${value}`)
  return number
}

function refuse(sentence: string): never {
  console.error(sentence)
  process.exit(2)
}
