/** Letters that a terminal gives two columns: those of East Asia in full width, and emoji. */
const WIDE =
  /^[[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Bopomofo}\p{Script=Yi}\p{Emoji_Presentation}\u{3000}-\u{303e}\u{30a0}-\u{30ff}\u{3190}-\u{33ff}\u{fe30}-\u{fe6b}\u{ff01}-\u{ff60}\u{ffe0}-\u{ffe6}]--[\u{ff61}-\u{ffdc}]]|\u{fe0f}/v

const PLAIN = /^[ -~]*$/

/** How many columns of a terminal a line takes. What is put together of several characters, as accents are, is one letter. */
export function widthOf(line: string): number {
  if (PLAIN.test(line)) return line.length
  let width = 0
  for (const { segment } of new Intl.Segmenter().segment(line)) width += WIDE.test(segment) ? 2 : 1
  return width
}
