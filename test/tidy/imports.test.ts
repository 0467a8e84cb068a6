import { expect, test } from 'vitest'
import { importCycles, MAY_IMPORT, wrongImports, wrongPageImports } from './imports.ts'
import { filesKnownToGit, readSource, sourcesBelow } from './tree.ts'

const sources = sourcesBelow('src')

const planted = (imports: Record<string, string>) =>
  Object.entries(imports).map(([path, text]) => ({ path, text: `${text}\nexport const x = 1\n` }))

test('every source file imports in the direction that the table allows', () => {
  expect(wrongImports(sources)).toEqual([])
})

test('the map in ARCHITECTURE.md has every part of src, and none that is not there', () => {
  const map = /^src\/\n((?: {2}.*\n)+)/m.exec(readSource('ARCHITECTURE.md').text)?.[1] ?? ''
  const drawn = Array.from(map.matchAll(/^ {2}([\w.-]+)\/? {2,}/gm), ([, name = '']) => name)
  const parts = [...new Set(sources.map(({ path }) => path.split('/')[1] ?? ''))].toSorted()
  expect(drawn.toSorted()).toEqual(parts)
  expect(Object.keys(MAY_IMPORT).toSorted()).toEqual(parts)
})

test('the dashboard imports nothing but the client of the HTTP API', () => {
  const page = sourcesBelow('dashboard/src')
  expect(wrongPageImports(page)).toEqual([])
  expect(page.length).toBeGreaterThanOrEqual(30)
  expect(importCycles(page)).toEqual([])
  const stray = planted({
    'dashboard/src/a.ts': `import { ROUTES } from '../../src/api/routes.ts'`,
    'dashboard/src/b.ts': `import { x } from '../../src/runs/run.ts'`,
    'dashboard/src/c.ts': `import { readFileSync } from 'node:fs'`,
    'dashboard/src/d.ts': `import type { Answer } from '../../src/api/routes.ts'`,
  })
  expect(wrongPageImports(stray)).toHaveLength(3)
})

test('no files load each other in a circle', () => {
  expect(importCycles(sources)).toEqual([])
})

test('the checks saw every source file that git knows', () => {
  const seen = sources.map((file) => file.path)
  const known = filesKnownToGit()?.filter((path) => /^src\/.*\.ts$/.test(path)) ?? seen
  expect(seen.toSorted()).toEqual(known.toSorted())
  expect(sources.length).toBeGreaterThanOrEqual(5)
})

test('the table speaks of itself only', () => {
  const parts = Object.keys(MAY_IMPORT)
  expect(
    Object.values(MAY_IMPORT)
      .flat()
      .filter((part) => !parts.includes(part)),
  ).toEqual([])
})

test('a planted import against the direction is found', () => {
  const files = planted({
    'src/base/clock.ts': `import { x } from '../runs/run.ts'`,
    'src/runs/run.ts': `import type { x } from '../base/clock.ts'`,
    'src/loop/loop.ts': `export * from '../model/model.ts'`,
    'src/model/model.ts': '',
    'src/attic/old.ts': '',
  })
  expect(wrongImports(files)).toEqual([
    'src/base/clock.ts imports src/runs/run.ts: base must not know runs',
    'src/loop/loop.ts imports src/model/model.ts: loop must not know model',
    'src/attic/old.ts: src/attic is not in the table',
  ])
})

test('a door with SQL, a stray child process and a missing file are found', () => {
  const files = planted({
    'src/store/sql.ts': '',
    'src/server/routes.ts': `import { x } from '../store/sql.ts'`,
    'src/runs/run.ts': `const { spawn } = await import('node:child_process')`,
    'src/runs/claim.ts': `const { spawn } = process.getBuiltinModule('node:child_process')`,
    'src/cli/main.ts': `import '../runs/gone.ts'`,
  })
  expect(wrongImports(files)).toEqual([
    expect.stringContaining('src/server/routes.ts imports src/store/sql.ts, which is only for src/store/,'),
    'src/runs/run.ts imports node:child_process, which is only for src/processes/, src/cli/demo/outside.ts',
    'src/runs/claim.ts imports node:child_process, which is only for src/processes/, src/cli/demo/outside.ts',
    'src/cli/main.ts imports src/runs/gone.ts, which is not a file of src',
  ])
})

test('a planted cycle is found, a cycle of types is not one', () => {
  const files = planted({
    'src/runs/a.ts': `import { x } from './b.ts'`,
    'src/runs/b.ts': `import { type x } from './c.ts'`,
    'src/runs/c.ts': `export { x } from './a.ts'`,
    'src/runs/d.ts': `import type { x } from './e.ts'`,
    'src/runs/e.ts': `import { x } from './d.ts'`,
  })
  expect(importCycles(files)).toEqual(['src/runs/a.ts → src/runs/b.ts → src/runs/c.ts → src/runs/a.ts'])
})
