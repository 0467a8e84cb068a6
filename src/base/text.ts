/** The first so many bytes, never half a character. */
export function beginningOf(text: string, bytes: number): string {
  const cut = Buffer.from(text).subarray(0, bytes).toString('utf8')
  return cut.endsWith('\u{fffd}') && !text.startsWith(cut) ? cut.slice(0, -1) : cut
}

/** A word as one would type it into a shell: in quotes where it needs them. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
