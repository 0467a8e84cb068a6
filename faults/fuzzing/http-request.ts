import type { Dice } from '../simulation/seeded.ts'
import { DOORS, fitting } from './grammar.ts'
import { bentText, oddJson, oddText } from './odd.ts'
import type { Input } from './surface.ts'

/** What a request can be made of. */
export interface Keys {
  readonly port: number
  readonly owner: string
  /** It may look, and do nothing. */
  readonly reader: string
  /** It may write the inbox of its thread, and speak for it. */
  readonly guest: string
  readonly thread: string
  readonly words: readonly string[]
}

/**
 * `owner`: it has the owner's token, and is wrong in other ways. `stranger`: it is right, but for who sends it, who may change
 * nothing at all. `guest`: the same, with the token for one thread.
 */
export type Who = 'owner' | 'stranger' | 'guest'

/** The lines of a request; a line is a piece, so that cutting down leaves whole ones out. */
export function requestOf(dice: Dice, keys: Keys, who: Who): Input {
  const door = dice.pick(DOORS)
  const ask = fitting(dice, door.ask, keys.words)
  const path = door.path.replaceAll(/:\w+/g, () => encodeURIComponent(dice.pick(keys.words)))
  const odd = (text: string, chance: number) => (who === 'owner' && dice.chance(chance) ? bentText(dice, text) : text)
  const isGet = door.method === 'GET'
  const query = isGet ? queryOf(ask) : ''
  const body = isGet ? '' : who === 'owner' ? oddJson(dice, ask) : JSON.stringify(ask)
  const method = odd(door.method, 0.05)
  const first = `${method} ${odd(`${path}${query}`, 0.3)} ${odd('HTTP/1.1', 0.02)}\r\n`
  const lines = [first, ...headersOf(dice, keys, who), ...bodyOf(dice, body, who)]
  if (who === 'owner' && dice.chance(0.03)) return hugeHeaders(dice, lines)
  if (who === 'owner' && dice.chance(0.06)) return [...lines, ...lines]
  if (who === 'owner' && dice.chance(0.08)) return lines.slice(0, dice.below(lines.length))
  return who === 'owner' && dice.chance(0.05)
    ? lines.map((line) => (dice.chance(0.2) ? bentText(dice, line) : line))
    : lines
}

const queryOf = (ask: unknown) => {
  const fields = Object.entries(ask as Record<string, unknown>).map(([name, value]) => [name, String(value)])
  return fields.length === 0 ? '' : `?${new URLSearchParams(fields).toString()}`
}

function headersOf(dice: Dice, { port, owner, reader, guest }: Keys, who: Who): string[] {
  const token = (text: string) => `Authorization: Bearer ${text}\r\n`
  const host = `Host: 127.0.0.1:${port}\r\n`
  if (who === 'owner')
    return [host, token(owner), ...(dice.chance(0.1) ? [`${oddName(dice)}: ${oneLine(oddText(dice))}\r\n`] : [])]
  if (who === 'guest') return [host, token(guest)]
  switch (dice.below(7)) {
    case 0:
      return [host]
    case 1:
      return [host, token(unlike(owner, dice.pick(['', 'x', bentText(dice, owner), oneLine(oddText(dice))])))]
    case 2:
      return [host, token(reader)]
    case 3:
      return [
        `Host: ${dice.pick(['evil.test', `evil.test:${port}`, '127.0.0.1', `127.0.0.1:${port}.evil.test`])}\r\n`,
        token(owner),
      ]
    case 4:
      return [
        host,
        token(owner),
        `Origin: ${dice.pick(['https://evil.test', 'null', `http://127.0.0.1:${port + 1}`])}\r\n`,
      ]
    case 5:
      return [host, token(owner), `Sec-Fetch-Site: ${dice.pick(['cross-site', 'same-site'])}\r\n`]
    default:
      return [host, `Host: evil.test\r\n`, token(owner)]
  }
}

/** What is bent may come out as it was: then it is the owner who sends it. */
const unlike = (owner: string, text: string) => (text.trim() === owner ? `${owner}x` : text)

const oneLine = (text: string) => text.replaceAll(/[\r\n]/g, '')
const oddName = (dice: Dice) =>
  dice.pick([
    'Content-Length',
    'Transfer-Encoding',
    'Expect',
    'Upgrade',
    'Cookie',
    'Last-Event-ID',
    'Accept',
    'X',
    'Connection',
  ])

function bodyOf(dice: Dice, body: string, who: Who): string[] {
  const bytes = Buffer.from(body).toString('latin1')
  const type = who === 'owner' && dice.chance(0.1) ? oneLine(oddText(dice)) : 'application/json'
  const end = ['Connection: close\r\n', '\r\n']
  if (body === '') return end
  if (who === 'owner' && dice.chance(0.1))
    return [`Content-Type: ${type}\r\n`, 'Transfer-Encoding: chunked\r\n', ...end, ...chunks(dice, bytes)]
  const length =
    who === 'owner' && dice.chance(0.08)
      ? dice.pick(['-1', '1e3', '99999999999999999999', '0', '5, 5', '+3'])
      : String(bytes.length)
  return [`Content-Type: ${type}\r\n`, `Content-Length: ${length}\r\n`, ...end, bytes]
}

function chunks(dice: Dice, bytes: string): string[] {
  const size = dice.chance(0.5) ? bytes.length.toString(16) : dice.pick(['-1', 'zz', 'ffffffffff', '0', '1;x=y', ''])
  return [`${size}\r\n`, bytes, '\r\n', dice.chance(0.7) ? '0\r\n\r\n' : '']
}

function hugeHeaders(dice: Dice, lines: readonly string[]): string[] {
  const many = Array.from({ length: dice.pick([200, 3_000]) }, (_, index) => `X-${index}: y\r\n`).join('')
  return [lines[0]!, dice.chance(0.5) ? many : `X: ${'y'.repeat(dice.pick([9_000, 70_000]))}\r\n`, ...lines.slice(1)]
}
