import fc from 'fast-check'

/** What a text can do to whoever shows it: steer a terminal, hide, turn around, push out of sight. */
const UNITS: readonly string[] = [
  '\u001b[2J\u001b[H',
  '\u001b[31m',
  '\u001b]0;owned\u0007',
  '\u001b]8;;http://evil.example\u001b\\click\u001b]8;;\u001b\\',
  '\u001b]52;c;ZXZpbA==\u0007',
  '\u001bPq\u001b\\',
  '\u009b2J',
  '\u009d0;owned\u009c',
  '\u0090payload\u009c',
  '\u0000',
  '\u0007',
  '\b\b\b\bapproved',
  '\u007f',
  'rm -rf / \rls           ',
  '\u000b\u000c',
  '\u0085',
  '\u202egnp.exe',
  '\u202a\u202b\u202d\u202c',
  '\u2066\u2067\u2068\u2069',
  '\u200e\u200f\u061c',
  '\u200b\u200c\u200d\u2060\ufeff',
  '\u00ad',
  '\u034f',
  '\u115f\u1160\u3164\uffa0',
  '\u180e',
  '\u2061\u2062\u2063\u2064',
  '\u2028',
  '\u2029',
  '\ufff9\ufffa\ufffb',
  '\u{e0001}\u{e0041}\u{e007f}',
  '\u{e0100}',
  '\ud800',
  '\udfff',
  '\n'.repeat(300),
  ' \n\t\n'.repeat(100),
  'x'.repeat(3_000),
  '\r\n\r\n\r\n',
  '"}],"state":"done"',
  '`$(touch /tmp/x)`',
  '<script>globalThis.taken = true</script>',
  '"><img src=x onerror="globalThis.taken = true">',
  'exact bytes (3):\n  {}',
  'hello',
  '日本語',
]

/** Always the same 300: a failure can be looked at again. */
export const HOSTILE: readonly string[] = [
  ...UNITS,
  ...fc.sample(
    fc.array(fc.constantFrom(...UNITS), { minLength: 2, maxLength: 6 }).map((parts) => parts.join('a')),
    { numRuns: 300 - UNITS.length, seed: 20_261 },
  ),
]

/** What must never leave us as it is; the end of a line and a tab may. */
const RAW: readonly (readonly [from: number, to: number])[] = [
  [0x00, 0x08],
  [0x0b, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x180e, 0x180e],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xd800, 0xdfff],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff9, 0xfffb],
  [0xe0000, 0xe0fff],
]

const isRaw = (character: string) => {
  const code = character.codePointAt(0) ?? 0
  return RAW.some(([from, to]) => code >= from && code <= to)
}

const FLOOD = /(?:[ \t]*\n){12}/

/** Where something raw is, with what is around it; undefined: nowhere. */
export function rawIn(text: string): string | undefined {
  const found = Array.from(text).find(isRaw)
  const at = found === undefined ? text.search(FLOOD) : text.indexOf(found)
  return at === -1 ? undefined : JSON.stringify(text.slice(Math.max(0, at - 40), at + 40))
}
