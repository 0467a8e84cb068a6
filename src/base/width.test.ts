import { expect, test } from 'vitest'

import { widthOf } from './width.ts'

test.each([
  ['', 0],
  ['plain', 5],
  ['Größe', 5],
  // Letters of two characters each: the accent stands above.
  ['e\u{301}a\u{308}', 2],
  ['東京', 4],
  ['ソウル', 6],
  ['ﾊﾝｶｸ', 4],
  ['서울', 4],
  ['Ｆｕｌｌ', 8],
  ['「」。', 6],
  ['✅ done', 7],
  ['❤️', 2],
  ['🇫🇷', 2],
  ['→ …', 3],
])('%j takes %i columns', (text, width) => {
  expect(widthOf(text)).toBe(width)
})
