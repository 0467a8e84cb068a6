/**
 * One life, to be traced: `node life.ts KIND SEED ROOT`. What was acknowledged it writes to standard output, so that it stands in
 * the trace where it happened.
 */
import { LIVES } from './lives.ts'
import { Place } from './place.ts'

const [, , kind = '', seed = '1', root = ''] = process.argv
const live = LIVES[kind]
if (live === undefined) throw new Error(`there is no life ${kind}`)
await live(new Place(root, Number(seed)))
