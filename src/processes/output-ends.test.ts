import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { OutputEnds } from './output-ends.ts'

function keepAll(bytes: Uint8Array, limits: { headBytes: number; tailBytes: number }, step: number) {
  const ends = new OutputEnds(limits)
  for (let at = 0; at < bytes.length; at += step) ends.keep(bytes.subarray(at, at + step))
  return { ...ends.texts(), totalBytes: ends.totalBytes }
}

/** Any characters, of one to four bytes. fast-check's own `binary` takes two seconds to prepare. */
const character = fc.oneof(
  ...[0x7f, 0x7ff, 0xd7ff, 0x10ffff].map((max, at, all) => fc.integer({ min: (all[at - 1] ?? -1) + 1, max })),
)
const anyText = (maxLength: number) =>
  fc.array(character.filter(isCharacter), { maxLength }).map((points) => String.fromCodePoint(...points))
const isCharacter = (point: number) => point < 0xd800 || point > 0xdfff

const limits = fc.record({ headBytes: fc.integer({ min: 0, max: 20 }), tailBytes: fc.integer({ min: 0, max: 20 }) })
const step = fc.integer({ min: 1, max: 50 })

test('what fits is kept whole, whatever the chunks', () => {
  fc.assert(
    fc.property(anyText(40), step, limits, (text, size, { headBytes, tailBytes }) => {
      const bytes = Buffer.from(text)
      const kept = keepAll(bytes, { headBytes, tailBytes }, size)
      const fits = bytes.length <= headBytes + tailBytes
      expect(kept.truncated).toBe(!fits)
      expect(!fits || kept.head + kept.tail === text).toBe(true)
    }),
  )
})

test('what does not fit is cut between characters, at both ends', () => {
  fc.assert(
    fc.property(anyText(80), step, limits, (text, size, kept) => {
      const { head, tail, totalBytes } = keepAll(Buffer.from(text), kept, size)
      expect(text.startsWith(head)).toBe(true)
      expect(text.endsWith(tail)).toBe(true)
      expect(totalBytes).toBe(Buffer.byteLength(text))
      expect(Buffer.byteLength(head)).toBeGreaterThan(Math.min(kept.headBytes, totalBytes) - 4)
    }),
  )
})

test('bytes that are no text are replaced, not lost', () => {
  expect(keepAll(Buffer.from([0x61, 0xff, 0x62, 0xe2]), { headBytes: 10, tailBytes: 10 }, 1)).toEqual({
    head: 'a\uFFFDb\uFFFD',
    tail: '',
    truncated: false,
    totalBytes: 4,
  })
})
