import { expect, test } from 'vitest'
import { exportedNames } from './exports.ts'
import { readSource } from './tree.ts'

test.each([
  ['src/index.ts', 'public-names.txt'],
  ['src/ai-sdk/index.ts', 'public-names-ai-sdk.txt'],
])('the public names of %s are those written down', async (path, written) => {
  const names = [...new Set(exportedNames(readSource(path)))]
  expect(names.length).toBeGreaterThan(0)
  // A new name needs a caller, a line in the docs and one in the changelog; `vitest run --project tidy -u` writes it down.
  await expect(`${names.join('\n')}\n`).toMatchFileSnapshot(written)
})

test('names are found in every form of export', () => {
  const text = `export { a, b as c } from './x.ts'\nexport type { D } from './y.ts'\nexport const e = 1, f = 2
    export function g() {}\nexport class H {}\nexport interface I {}\nexport type J = 1`
  expect(exportedNames({ path: 'a.ts', text })).toEqual(['D', 'H', 'I', 'J', 'a', 'c', 'e', 'f', 'g'])
  expect(() => exportedNames({ path: 'a.ts', text: `export * from './x.ts'` })).toThrow('name what is public')
})
