/**
 * One benchmark in this process, from its own file or under the runner: sizes are options of its command line (`--rounds 3`), with
 * `--quick`, `--engine sqlite|postgres|both`, `--json FILE`, and `--check` to fail on a bound that does not hold.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { PostgresServer } from '../test/support/postgres-server.ts'
import { holds } from './bench.ts'
import type { Bench, Engine, Place, Row, Sizes } from './bench.ts'
import { printTable } from './table.ts'

/** Beside the defaults, as the peers' benchmark has it; every commit is synced. */
export const POSTGRES_SETTINGS = { shared_buffers: '512MB', max_wal_size: '4GB', synchronous_commit: 'on' }

export const engineOption = (given: string): readonly Engine[] =>
  given === 'both' ? ['sqlite', 'postgres'] : [given === 'postgres' ? 'postgres' : 'sqlite']

/** What the command line says about the sizes of one benchmark. */
export function readOptions({ full, quick }: Bench, args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      engine: { type: 'string', default: 'both' },
      json: { type: 'string' },
      check: { type: 'boolean', default: false },
      ...Object.fromEntries(Object.keys(full).map((size) => [size, { type: 'string' as const }])),
    },
  })
  const chosen = values.quick ? quick : full
  const given = values as Readonly<Record<string, string | boolean | undefined>>
  const sizes = Object.fromEntries(Object.entries(chosen).map(([name, size]) => [name, Number(given[name] ?? size)]))
  return {
    sizes,
    engines: engineOption(values.engine),
    json: values.json,
    check: values.check,
  }
}

export async function carryOut(bench: Bench, sizes: Sizes, engines: readonly Engine[]): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
  let server: Promise<PostgresServer> | undefined
  const place: Place = {
    folder,
    engines,
    postgres: async () => (await (server ??= PostgresServer.create({ settings: POSTGRES_SETTINGS }))).url(),
    say: (line) => console.error(`  ${line}`),
  }
  try {
    return await bench.run(sizes, place)
  } finally {
    await (await server)?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What a benchmark's own `run.ts` does. */
export async function runAlone(...benches: readonly Bench[]): Promise<void> {
  const all: Record<string, Row[]> = {}
  for (const bench of benches) {
    const { sizes, engines, json, check } = readOptions(bench, process.argv.slice(2))
    const rows = (all[bench.name] = await carryOut(bench, sizes, engines))
    printTable([{ bench: bench.name, rows }])
    if (json !== undefined) writeFileSync(json, `${JSON.stringify({ sizes, benches: all }, null, 2)}\n`)
    if (check && !rows.every((row) => holds(row))) process.exitCode = 1
  }
}
