/**
 * What opening and discarding a transaction costs, beside what git itself takes for a working tree:
 * node bench/workspace/run.ts [--files N] [--commits N] [--rounds N] [--json FILE] [--check]
 */
import { runAlone } from '../alone.ts'
import { bench } from './bench.ts'

await runAlone(bench)
