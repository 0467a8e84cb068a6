/** The runner's way to a benchmark: node bench/one.ts NAME [its options] */
import { runAlone } from './alone.ts'
import type { Bench } from './bench.ts'

const [name = ''] = process.argv.splice(2, 1)
const { bench } = (await import(`./${name}/bench.ts`)) as { bench: Bench }
await runAlone(bench)
