/**
 * Builds below the folder that it is given, as the package is but for types and maps: the command line of these sources, or the
 * programs of the tests together with what Holdfast itself starts.
 *
 *   node build-program.ts program|fixtures FOLDER
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { build } from 'tsdown'

import config from '../../tsdown.config.ts'
import { FIXTURES } from './fixtures.ts'

const [, , what, folder = ''] = process.argv
const outDir = join(folder, 'dist')

/** By name: beside files of the tests, those of `src` would otherwise keep that folder. */
const named = (files: readonly string[]) =>
  Object.fromEntries(files.map((file) => [file.replace(/^src\//, '').replace(/\.ts$/, ''), file]))

/** What the package depends on is in it: of the 190 files that a daemon loads, 120 are theirs. */
const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: Record<string, string> }
const theirs = Object.keys(dependencies).map((name) => new RegExp(`^${name}(/|$)`))

await build({
  ...config,
  deps: { alwaysBundle: theirs, onlyBundle: false },
  entry: named([...(config.entry as string[]), ...(what === 'fixtures' ? globSync(FIXTURES) : [])]),
  config: false,
  outDir,
  dts: false,
  sourcemap: false,
  copy: [{ from: 'src/cli/demo/*.mjs', to: join(outDir, 'cli/demo') }],
  logLevel: 'error',
})
