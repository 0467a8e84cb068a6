import { expect, test } from 'vitest'

import { readProcess, unlessGone } from './process-table.ts'

const failing = (code: string) => Object.assign(new Error(code), { code })

test('only "not there" means that a process is gone; not to be able to look means nothing', () => {
  expect(unlessGone(failing('ENOENT'))).toBeUndefined()
  expect(unlessGone(failing('ESRCH'))).toBeUndefined()
  expect(() => unlessGone(failing('EMFILE'))).toThrow('EMFILE')
  expect(() => unlessGone(failing('EACCES'))).toThrow('EACCES')
})

test('this process is there, and one with an impossible number is not', () => {
  expect(readProcess(process.pid)).toMatchObject({ pid: process.pid, dead: false })
  expect(readProcess(2 ** 30)).toBeUndefined()
})
