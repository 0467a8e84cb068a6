import { expect, test } from 'vitest'

import { widthOf } from '../../base/width.ts'
import { table } from './output.ts'

test('columns line up whatever the letters are, and however a cell has to be shown', () => {
  const names = ['東京の天気', 'plain', '✅ ok', 'a bell \u0007', 'two\nlines']
  const text = table(
    ['NAME', '<', 'LAST'],
    names.map((name) => [name, '<', 'last']),
  )
  const places = text.split('\n').map((line) => widthOf(line.slice(0, line.indexOf('<'))))
  expect(places).toEqual(Array(names.length + 1).fill('a bell \\u{7}  '.length))
})

test('a table without rows says what there is none of', () => {
  expect(table(['NAME'], [], 'nothing waits')).toBe('nothing waits')
})
