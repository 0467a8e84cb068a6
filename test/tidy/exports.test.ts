import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exportedNames } from './exports.ts'
import { readSource, ROOT } from './tree.ts'

test.runIf(existsSync(join(ROOT, 'src/index.ts')))('the public names are those written down', async () => {
  const names = exportedNames(readSource('src/index.ts'))
  expect(names.length).toBeGreaterThan(0)
  // A new name needs a caller, a line in the docs and one in the changelog; `vitest run --project tidy -u` writes it down.
  await expect(`${names.join('\n')}\n`).toMatchFileSnapshot('public-names.txt')
})

test('names are found in every form of export', () => {
  const text = `export { a, b as c } from './x.ts'\nexport type { D } from './y.ts'\nexport const e = 1, f = 2
    export function g() {}\nexport class H {}\nexport interface I {}\nexport type J = 1`
  expect(exportedNames({ path: 'a.ts', text })).toEqual(['D', 'H', 'I', 'J', 'a', 'c', 'e', 'f', 'g'])
  expect(() => exportedNames({ path: 'a.ts', text: `export * from './x.ts'` })).toThrow('name what is public')
})
