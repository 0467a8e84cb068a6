import { describeError } from '../../src/base/errors.ts'
import { readConfig } from '../../src/config/config.ts'
import { page, table } from './markdown.ts'
import { SETTINGS } from './settings.ts'
import type { Group } from './settings.ts'

export function configPage(): string {
  return page(
    'Configuration',
    '`holdfast.config.json`, or `holdfast.config.ts` with a default export of the same shape, in the folder of the user (`holdfast init` writes one there), named by `--config`, or found in the working folder\nand used with `--trust`. Whatever is wrong is told at once, each with its line and its remedy. Durations are texts: `"500ms"`, `"10s"`, `"30m"`, `"12h"`, `"14d"`.',
    ...SETTINGS.flatMap(section),
  )
}

function section(group: Group): string[] {
  const { title, about, place, settings } = group
  const known = knownIn(group)
  const described = Object.keys(settings)
  const [missing, strange] = [
    known.filter((name) => !described.includes(name)),
    described.filter((name) => !known.includes(name)),
  ]
  if (missing.length + strange.length > 0)
    throw new Error(
      `scripts/docs/settings.ts, ${title}: nothing is said of ${missing.join(', ') || '-'}; there is no ${strange.join(', ') || '-'}`,
    )
  const rows = known.map((name) => [`\`${name}\``, settings[name]!])
  return [`## ${title}`, `At \`${place}\`. ${about}`, table(['setting', 'is'], rows)]
}

const UNKNOWN = 'q!'

/** The reader itself says what it knows, when it is given something that it does not. */
function knownIn({ title, probe }: Group): string[] {
  try {
    readConfig(probe({ [UNKNOWN]: 1 }), 'probe')
  } catch (error) {
    const line = describeError(error)
      .split('\n')
      .find((each) => each.includes(UNKNOWN))
    const list = /known here: (.*)$/.exec(line ?? '')?.[1]
    if (list !== undefined) return list.split(', ')
  }
  throw new Error(`the reader of ${title} does not say what it knows`)
}
