/** Builds the command line of these sources below the folder that it is given, as the package has it but for types and maps. */
import { join } from 'node:path'

import { build } from 'tsdown'

import config from '../../tsdown.config.ts'

const folder = process.argv[2]!
const outDir = join(folder, 'dist')
await build({
  ...config,
  config: false,
  outDir,
  dts: false,
  sourcemap: false,
  copy: [{ from: 'src/cli/demo/*.mjs', to: join(outDir, 'cli/demo') }],
  logLevel: 'error',
})
