/**
 * How late firings are, and what they cost, with a million others ahead:
 * node bench/schedule/run.ts [--firings N] [--pending N] [--seconds S] [--rounds N] [--engine sqlite|postgres|both] [--json FILE] [--check]
 */
import { runAlone } from '../alone.ts'
import { bench } from './bench.ts'

await runAlone(bench)
