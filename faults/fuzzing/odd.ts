import type { Dice } from '../simulation/seeded.ts'

/** Texts that programs stumble over. */
const ODD_TEXTS = [
  '',
  ' ',
  '\0',
  '\n',
  '\r\n\r\n',
  '\t',
  '\u001b[2J\u001b]0;x\u0007',
  '\u202e\u2066evil\u2069',
  '\ud800',
  '\udfff\ud800',
  '\ufeff',
  '\u200b\u200d',
  'e\u0301\u0301\u0301',
  '👩‍👩‍👧‍👦',
  'ﷺ',
  '__proto__',
  'constructor',
  'prototype',
  'hasOwnProperty',
  'toString',
  'then',
  '../../../etc/passwd',
  '..',
  '.',
  '/',
  '//',
  '\\',
  '%00',
  '%2e%2e%2f',
  '%',
  '%zz',
  "'; drop table runs; --",
  '" or 1=1',
  '${HOME}',
  '{{message}}',
  '$(touch pwned)',
  '`touch pwned`',
  '*',
  '?',
  '~',
  '-',
  '--',
  '-1',
  '--help',
  '0',
  '00',
  '-0',
  '1e309',
  'NaN',
  'Infinity',
  '0x10',
  '9007199254740993',
  '1'.repeat(400),
  'true',
  'null',
  'undefined',
  '[object Object]',
  '1969-12-31T23:59:59Z',
  '2026-02-30T00:00:00Z',
  '+275760-09-13T00:00:00.001Z',
  '999999999999d',
  '1.5h',
  '* * * * *',
  '*/0 * * * *',
  'Europe/Nowhere',
] as const

const ODD_NUMBERS = [0, -0, 1, -1, 0.1, 1e21, 1e308, -1e308, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 53 + 2, 5e-324] as const

export function oddText(dice: Dice): string {
  const kind = dice.below(20)
  if (kind < 14) return dice.pick(ODD_TEXTS)
  if (kind < 16) return dice.pick(ODD_TEXTS).repeat(1 + dice.below(200))
  if (kind < 19) return anyCharacters(dice, 1 + dice.below(12))
  return anyCharacters(dice, 1).repeat(1 + dice.below(70_000))
}

/** Of any plane, half of a pair too. */
function anyCharacters(dice: Dice, length: number): string {
  return Array.from({ length }, () => {
    const most = dice.pick([0x20, 0x80, 0x800, 0x1_0000])
    return String.fromCharCode(dice.below(most))
  }).join('')
}

/** What JSON can say, and little of it what is expected. */
export function oddValue(dice: Dice, depth = 3): unknown {
  switch (dice.below(depth > 0 ? 9 : 6)) {
    case 0:
      return null
    case 1:
      return dice.chance(0.5)
    case 2:
      return dice.pick(ODD_NUMBERS)
    case 3:
    case 4:
    case 5:
      return oddText(dice)
    case 6:
      return Array.from({ length: dice.below(4) }, () => oddValue(dice, depth - 1))
    case 7:
      return Object.fromEntries(
        Array.from({ length: dice.below(4) }, () => [oddText(dice).slice(0, 300), oddValue(dice, depth - 1)]),
      )
    default:
      return dice.chance(0.1) ? nested(dice) : oddText(dice)
  }
}

/** Deeper than anybody writes by hand, and than a reader that calls itself can go. */
function nested(dice: Dice): unknown {
  const levels = dice.pick([20, 200, 2_000])
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = dice.chance(0.5) ? [value] : { a: value }
  return value
}

/** The same with something in it replaced, left out, added or doubled. */
export function bent(dice: Dice, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || dice.chance(0.2)) return bentScalar(dice, value)
  if (Array.isArray(value)) return bentList(dice, value as unknown[])
  const entries = Object.entries(value)
  const place = dice.below(entries.length + 1)
  const chosen = entries[place]
  if (chosen === undefined) return { ...value, [oddText(dice).slice(0, 300)]: oddValue(dice) }
  if (dice.chance(0.15)) return Object.fromEntries(entries.toSpliced(place, 1))
  return { ...value, [chosen[0]]: bent(dice, chosen[1]) }
}

function bentScalar(dice: Dice, value: unknown): unknown {
  if (typeof value === 'string' && dice.chance(0.4)) return bentText(dice, value)
  return oddValue(dice)
}

function bentList(dice: Dice, list: readonly unknown[]): unknown[] {
  const place = dice.below(list.length + 1)
  if (place === list.length) return [...list, oddValue(dice)]
  if (dice.chance(0.2)) return list.toSpliced(place, 1)
  if (dice.chance(0.2)) return [...list, ...list]
  return list.with(place, bent(dice, list[place]))
}

/** Cut, doubled, turned, or with something put into it. */
export function bentText(dice: Dice, text: string): string {
  const [one, other] = [dice.below(text.length + 1), dice.below(text.length + 1)]
  const [from, to] = [Math.min(one, other), Math.max(one, other)]
  switch (dice.below(6)) {
    case 0:
      return text.slice(0, from)
    case 1:
      return text.slice(0, from) + text.slice(Math.min(to, from + 8))
    case 2:
      return text.slice(0, to) + text.slice(from)
    case 3:
      return text.slice(0, from) + oddText(dice) + text.slice(from)
    case 4:
      return text.slice(0, from) + String.fromCharCode(dice.below(256)) + text.slice(from + 1)
    default:
      return text.slice(from, to) + text
  }
}

/** JSON that is right, nearly right, or none. */
export function oddJson(dice: Dice, value: unknown): string {
  let bending = value
  const bends = dice.below(4)
  for (let index = 0; index < bends; index++) bending = bent(dice, bending)
  const text = JSON.stringify(bending) ?? 'undefined'
  return dice.chance(0.25) ? bentText(dice, text) : text
}
