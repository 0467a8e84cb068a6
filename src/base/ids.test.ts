import { expect, test } from 'vitest'

import { systemRandomness } from './ids.ts'

const VERSION_7 = /^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/

test('ids of one process come in its order, also within a millisecond, and are UUIDs of version 7 without their dashes', () => {
  const ids = Array.from({ length: 10_000 }, () => systemRandomness.id())
  expect(ids.findIndex((id, index) => index > 0 && id <= ids[index - 1]!)).toBe(-1)
  expect(ids.filter((id) => !VERSION_7.test(id))).toEqual([])
})
