import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { readTokenFile } from './token.ts'

test('a token file that cannot be read is told of with a code, and one that is not there lets nobody in', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-token-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'file')
  writeFileSync(file, 'no folder')
  await expect(readTokenFile(join(file, 'token'))).rejects.toMatchObject({
    code: 'files/not-a-folder',
    message: expect.stringContaining('cannot read'),
  })
  expect(await readTokenFile(join(folder, 'token'))).toBeUndefined()
})
