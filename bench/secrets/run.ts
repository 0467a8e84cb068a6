/** What it costs to look for secrets in text on its way into the database and out of it: node bench/secrets/run.ts */
import { runAlone } from '../alone.ts'
import { bench } from './bench.ts'

await runAlone(bench)
