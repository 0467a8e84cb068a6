import { expect, test } from 'vitest'
import { straysInto, WORLD, WORLD_MODULES } from './world.ts'
import { sourcesBelow } from './tree.ts'

const sources = sourcesBelow('src')

test('time, chance, processes and the environment are touched in their adapters only', () => {
  expect(straysInto(sources)).toEqual([])
})

test('the check sees the adapters themselves', () => {
  const base = sources.filter(({ path }) => path.startsWith('src/base/'))
  const outside = base.map((file) => ({ ...file, path: file.path.replace('src/base/', 'src/elsewhere/') }))
  const found = straysInto(outside).join('\n')
  for (const name of ['Date.now', 'process.hrtime', 'setTimeout', 'Math.random', 'randomBytes']) {
    expect(found).toContain(name)
  }
})

test.for(WORLD.flatMap((rule) => rule.names))('a planted %s is found', (name) => {
  const text = `export const a = 1\nexport const b = ${name}\nexport const c = () => ${name}(1)\n`
  expect(straysInto([{ path: 'src/runs/run.ts', text }])).toContainEqual(
    expect.stringContaining(`src/runs/run.ts:3 uses ${name}, which belongs to`),
  )
})

test.for(WORLD_MODULES.flatMap((rule) => rule.modules))('a planted import of %s is found', (specifier) => {
  const text = `import * as m from '${specifier}'\n`
  expect(straysInto([{ path: 'src/runs/run.ts', text }])).toHaveLength(1)
})

test('reading the clock by new Date() or chance from node:crypto is found, a date of something is not', () => {
  const text = `import { createHash, randomBytes } from 'node:crypto'\nnew Date(5)\nnew Date()\n`
  expect(straysInto([{ path: 'src/runs/run.ts', text }])).toEqual([
    'src/runs/run.ts:3 uses new Date(), which belongs to src/base/clock.ts',
    'src/runs/run.ts takes randomBytes from node:crypto, which belongs to src/base/ids.ts, src/secrets/',
  ])
  const later = `const { randomUUID } = process.getBuiltinModule('node:crypto')\nconst random = 1\n`
  expect(straysInto([{ path: 'src/runs/run.ts', text: later }])).toEqual([
    'src/runs/run.ts takes randomUUID from node:crypto, which belongs to src/base/ids.ts, src/secrets/',
  ])
})
