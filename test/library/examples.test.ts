import { join } from 'node:path'

import { expect, test } from 'vitest'

import { startProcess } from '../support/holdfast.ts'
import { filesBelow, ROOT } from '../tidy/tree.ts'

const programs = filesBelow('examples').filter((path) => path.endsWith('.ts') && !path.endsWith('.config.ts'))

test.each(programs)('%s runs and finds itself right', async (path) => {
  const ownPackage = join(ROOT, 'test/support/own-package.ts')
  const { code, stderr, stdout } = await startProcess(process.execPath, ['--import', ownPackage, path], {}).ended
  expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' })
})

test('there are examples', () => {
  expect(programs).toContain('examples/library/orders.ts')
})
