import { formatDuration } from '../../src/base/duration.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { readSource } from '../../test/tidy/tree.ts'
import { page, table } from './markdown.ts'

export function limitsPage(): string {
  const rows = Object.entries(LIMITS).map(([name, value]) => [
    `\`${name}\``,
    inWords(name, value),
    REASONS.get(name) ?? '',
  ])
  return page(
    'Limits',
    'Everything has one, with its reason, in `src/base/limits.ts`. What can be configured is in [config.md](config.md); what a run may spend in [../limits.md](../limits.md).',
    table(['limit', 'is', 'because'], rows),
  )
}

/** By their names, as the file has them: a comment is about what stands below it, up to the next one or a blank line. */
const REASONS: ReadonlyMap<string, string> = reasonsIn(readSource('src/base/limits.ts').text)

function reasonsIn(text: string): ReadonlyMap<string, string> {
  const reasons = new Map<string, string>()
  let reason = ''
  for (const [, comment, name, blank] of text.matchAll(/\/\*\*([^]*?)\*\/|^ {2}(\w+):|^(\s*)$/gm)) {
    if (comment !== undefined) reason = comment.replaceAll(/\s*\n\s*\*?\s*/g, ' ').trim()
    else if (name !== undefined) reasons.set(name, reason)
    else if (blank !== undefined) reason = ''
  }
  return reasons
}

/** With the unit that its name says. */
function inWords(name: string, value: unknown): string {
  if (typeof value !== 'number') return `\`${JSON.stringify(value)}\``
  if (name.endsWith('Ms')) return formatDuration(value)
  return name.endsWith('Bytes') && value % 1024 === 0 ? inBytes(value) : value.toLocaleString('en')
}

const inBytes = (value: number): string =>
  value % 1024 ** 2 === 0 ? `${value / 1024 ** 2} MiB` : `${value / 1024} KiB`
