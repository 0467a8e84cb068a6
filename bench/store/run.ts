/** The store beside the raw drivers: node bench/store/run.ts [--quick] [--engine sqlite|postgres|both] [--rounds N] [--json FILE] [--check] */
import { runAlone } from '../alone.ts'
import { bench } from './bench.ts'

await runAlone(bench)
