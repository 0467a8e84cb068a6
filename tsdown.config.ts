import { defineConfig } from 'tsdown'

/** One file out for one file in: a module finds its neighbours (the supervisor) beside itself, in `src` as in `dist`. */
export default defineConfig({
  entry: [
    'src/index.ts',
    'src/testing/index.ts',
    'src/cli/main.ts',
    'src/processes/supervisor-main.ts',
    'src/hooks/program.ts',
  ],
  // The programs of the demo are no modules of ours: they are started.
  copy: [{ from: 'src/cli/demo/*.mjs', to: 'dist/cli/demo' }],
  unbundle: true,
  format: 'esm',
  platform: 'node',
  fixedExtension: false,
  target: 'node24',
  dts: true,
  sourcemap: true,
  clean: true,
})
