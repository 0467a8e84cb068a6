/**
 * Writes docs/performance.md with its plots, and the tables of docs/scaling.md, from the newest results.
 *
 *   npm run bench:page [-- --own bench/results/latest.json] [--peers bench/results/peers.json] [--limits bench/results/limits.json] [--slower bench/results/slower-1.json ...] [--out docs]
 *
 * What it used is kept beside the plots, so that the page can be written again from a clean clone.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { drawBars } from '../../scripts/docs/svg.ts'
import { ownPlots, peerPlots } from './charts.ts'
import { eachOf } from './figures.ts'
import type { Measured, Own, Peers } from './figures.ts'
import { newestLimits } from './limits.ts'
import { writePage } from './page.ts'
import { keptOf } from './slower.ts'
import type { Slower } from './slower.ts'
import { withTables } from './scale.ts'
import type { Scale } from './scale.ts'
import { NAMES, checkTargets } from './targets.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const results = join(ROOT, 'bench', 'results')

const { values } = parseArgs({
  options: {
    own: { type: 'string', default: join(results, 'latest.json') },
    peers: { type: 'string', default: join(results, 'peers.json') },
    limits: { type: 'string', default: join(results, 'limits.json') },
    scale: { type: 'string', default: join(results, 'scale.json') },
    slower: { type: 'string', multiple: true, default: [] },
    out: { type: 'string', default: join(ROOT, 'docs') },
  },
})
const folder = join(values.out, 'performance')
mkdirSync(folder, { recursive: true })

/** The given file, or what the page was written from the last time. */
function read<T>(given: string, kept: string): T | undefined {
  const path = [given, join(folder, kept)].find((each) => existsSync(each))
  return path === undefined ? undefined : (JSON.parse(readFileSync(path, 'utf8')) as T)
}

const own = read<Own>(values.own, 'own.json')
const limits = newestLimits(own, read<Own>(values.limits, 'limits.json'))
const whole = read<Peers & { raw?: readonly Measured[] }>(values.peers, 'peers.json')
if (own === undefined && whole === undefined) {
  console.error(`there are no results: run npm run bench, and node bench/peers/run.ts CHECKOUT --out ${values.peers}`)
  process.exit(1)
}
const { raw, ...medians } = whole ?? ({} as Peers & { raw?: readonly Measured[] })
const singly = raw === undefined ? {} : { each: eachOf(raw, NAMES) }
const peers = whole === undefined ? undefined : { ...(medians as Peers), ...singly }

const given = values.slower.flatMap((path) => JSON.parse(readFileSync(path, 'utf8')) as Slower | Slower[])
const slower = given.length > 0 ? given.map(keptOf) : (read<Slower[]>('', 'slower.json') ?? [])

const [beside, alone] = [peers === undefined ? [] : peerPlots(peers), own === undefined ? [] : ownPlots(own)]
for (const old of readdirSync(folder)) if (old.endsWith('.svg')) rmSync(join(folder, old))
for (const plot of [...beside, ...alone]) writeFileSync(join(folder, `${plot.file}.svg`), drawBars(plot))
if (own !== undefined) writeFileSync(join(folder, 'own.json'), `${JSON.stringify(own, null, 2)}\n`)
if (limits !== undefined && limits !== own)
  writeFileSync(join(folder, 'limits.json'), `${JSON.stringify(limits, null, 2)}\n`)
if (peers !== undefined) writeFileSync(join(folder, 'peers.json'), `${JSON.stringify(peers, null, 2)}\n`)
if (slower.length > 0) writeFileSync(join(folder, 'slower.json'), `${JSON.stringify(slower, null, 2)}\n`)
const checked = peers === undefined ? [] : checkTargets(peers)
const page = join(values.out, 'performance.md')
writeFileSync(page, writePage({ own, peers, limits, slower, checked, peerPlots: beside, ownPlots: alone }))
const scale = read<Scale>(values.scale, 'scale.json')
const scaling = join(values.out, 'scaling.md')
if (scale !== undefined && existsSync(scaling)) {
  writeFileSync(join(folder, 'scale.json'), `${JSON.stringify(scale, null, 2)}\n`)
  writeFileSync(scaling, withTables(readFileSync(scaling, 'utf8'), scale))
}
const kept = ['own.json', 'peers.json', 'limits.json', 'slower.json', 'scale.json'].map((name) => join(folder, name))
const written = [page, scaling, ...kept].filter((each) => existsSync(each))
spawnSync(join(ROOT, 'node_modules', '.bin', 'oxfmt'), written, { cwd: ROOT, stdio: 'inherit' })
const missing = checked
  .filter(({ met }) => met !== true)
  .map(({ workload, engine, what }) => `${workload} ${engine}: ${what}`)
console.log(
  `${page} and ${beside.length + alone.length} plots; missed or without a figure: ${missing.join('; ') || 'none'}`,
)
