import { expect, test } from 'vitest'

import { HoldfastError } from '../../src/base/errors.ts'
import { EXIT, exitCodeOf } from '../../src/cli/words/exit-code.ts'
import { statusOf } from '../../src/server/errors.ts'
import { readSource } from './tree.ts'

/** Of these nouns every conflict is one with what is stored; of the others (git, workspace) some are failures of the machine. */
const NOUNS = /^(runs|messages|threads|approvals|doubts|actions|tokens|schedules)\//
/** Not refused: it was accepted, and what was waited for did not come. */
const FAILED = ['messages/not-answered']

test('what is a conflict over HTTP is a refusal on the command line', () => {
  const codes = readSource('docs/reference/errors.md').text.match(/(?<=^\| `)[^`]+/gm) ?? []
  const conflicts = codes.filter((code) => NOUNS.test(code) && !FAILED.includes(code))
  expect(conflicts.length).toBeGreaterThan(20)
  const errors = conflicts.map((code) => new HoldfastError(code, 'no'))
  expect(errors.filter((error) => statusOf(error) !== 409)).toEqual([])
  expect(errors.filter((error) => exitCodeOf(error) !== EXIT.refused)).toEqual([])
})
