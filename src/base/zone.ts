import { HoldfastError } from './errors.ts'

/** The zone of the machine, or of TZ. */
export const machineZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone

export function checkZone(zone: string): void {
  try {
    Intl.DateTimeFormat('en', { timeZone: zone })
  } catch (cause) {
    const remedy = 'write an IANA name, as Europe/Berlin or UTC'
    throw new HoldfastError('usage/zone', `"${zone}" is no time zone`, { remedy, cause })
  }
}

/** As ISO 8601 with the offset that the zone has then: 2026-03-29T03:00:00+02:00. */
export function localTime(at: number, zone: string): string {
  const ms = offsetMs(at, zone)
  const [hours, minutes] = [Math.floor(Math.abs(ms) / 3_600_000), Math.floor(Math.abs(ms) / 60_000) % 60]
  const two = (value: number) => String(value).padStart(2, '0')
  return `${new Date(at + ms).toISOString().slice(0, 19)}${ms < 0 ? '-' : '+'}${two(hours)}:${two(minutes)}`
}

/** How far the zone's clocks are ahead of UTC at this instant. */
function offsetMs(at: number, zone: string): number {
  const parts = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' }).formatToParts(at)
  const name = parts.find(({ type }) => type === 'timeZoneName')?.value ?? 'GMT'
  const found = /([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(name)
  if (found === null) return 0
  const [, sign, hours, minutes, seconds = '0'] = found
  return (sign === '-' ? -1_000 : 1_000) * (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds))
}

const INSTANT =
  /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,3})\d*)?)?\s?([Zz]|[+-]\d\d(?::?\d\d)?)?$/

export interface ReadInstant {
  readonly at: number
  /** It says no offset: it is what the clocks of the zone show. */
  readonly isLocal: boolean
}

/** Reads an instant of ISO 8601. Without an offset it is the time in `zone`; of a time that comes twice, the first. */
export function parseInstant(text: string, zone: string): ReadInstant {
  const match = INSTANT.exec(text.trim())
  if (match === null) throw notAnInstant(text)
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0)) as Six
  const fraction = Number((match[7] ?? '').padEnd(3, '0'))
  const clock = Date.UTC(year, month - 1, day, hour, minute, second, fraction)
  // The 30th of February is no other day in March.
  const written = `${match[1]}-${match[2]}-${match[3]}T${match[4]}:${match[5]}:${match[6] ?? '00'}`
  if (!new Date(clock).toISOString().startsWith(written)) throw notAnInstant(text)
  const offset = match[8]
  return offset === undefined
    ? { at: onClocks(clock, zone, text), isLocal: true }
    : { at: clock - writtenOffset(offset, text), isLocal: false }
}

type Six = [number, number, number, number, number, number]

const notAnInstant = (text: string) =>
  new HoldfastError('usage/instant', `"${text}" is no date with a time`, {
    remedy: 'write it as 2026-12-01T09:00, with Z or +01:00 behind it if it is not the time of this zone',
  })

function writtenOffset(offset: string, text: string): number {
  if (/^z$/i.test(offset)) return 0
  const [hours, minutes] = [Number(offset.slice(1, 3)), Number(offset.slice(3).replace(':', ''))]
  // The farthest zones are 12 hours behind and 14 ahead.
  if (hours > 14 || minutes > 59) throw notAnInstant(text)
  return (offset.startsWith('-') ? -60_000 : 60_000) * (hours * 60 + minutes)
}

const A_DAY = 86_400_000

/** When the clocks of the zone show this. An hour that a night leaves out is refused: nobody knows which was meant. */
function onClocks(clock: number, zone: string, text: string): number {
  const candidates = [clock - A_DAY, clock + A_DAY].map((around) => clock - offsetMs(around, zone))
  const shown = candidates.filter((at) => at + offsetMs(at, zone) === clock)
  if (shown.length > 0) return Math.min(...shown)
  throw new HoldfastError('usage/instant', `there is no ${text} in ${zone}: the clocks go forward over it`, {
    remedy: 'choose an hour before or after it, or write the offset',
  })
}
