/** What the hook's command costs its client, beside starting Node for nothing: node bench/hooks/run.ts [--rounds N] [--json FILE] [--check] */
import { runAlone } from '../alone.ts'
import { bench } from './bench.ts'

await runAlone(bench)
