import * as fc from 'fast-check'

import { CLIENT_NAMES } from '../../src/hooks/install/client.ts'
import type { ClientName } from '../../src/hooks/install/client.ts'
import { eventOf, wantedHandlers } from '../../src/hooks/install/entries.ts'
import type { Wanted } from '../../src/hooks/install/entries.ts'

export const wantedFor = (client: ClientName, more: Partial<Wanted> = {}): Wanted => ({
  client,
  node: '/opt/node/bin/node',
  script: "/opt/hold fast's/bin/hook.cjs",
  home: undefined,
  store: undefined,
  daemon: undefined,
  startDaemon: false,
  permissions: false,
  ...more,
})

const eventsOf = (client: ClientName) => [...new Set([...wantedHandlers(wantedFor(client)).keys()].map(eventOf))]

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

const foreignHandler = fc.oneof(
  fc.record({ type: fc.constant('command'), command: fc.constantFrom('say done', 'node hook.cjs', 'a "b" \\ c') }),
  fc.record({ type: fc.constant('http'), url: fc.webUrl() }),
  fc.constantFrom<Json>(null, 'odd', 7, {}),
)

const foreignGroup = fc.oneof(
  fc.record({ hooks: fc.array(foreignHandler, { maxLength: 3 }) }),
  fc.record({ matcher: fc.constantFrom('Bash', '', '*'), hooks: fc.array(foreignHandler, { maxLength: 2 }) }),
  fc.constantFrom<Json>(null, 'odd', {}),
)

const anyJson = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>
const anyKey = fc.oneof(fc.string(), fc.constantFrom('model', 'env', '__proto__', 'ümlaut', 'a"b'))

/** Settings as others may have them: anything, and hooks for the same events as ours. */
export function settingsValues(client: ClientName): fc.Arbitrary<{ [key: string]: Json }> {
  const event = fc.constantFrom(...eventsOf(client), 'PreToolUse', 'Whatever')
  const hooks = fc.dictionary(event, fc.array(foreignGroup, { maxLength: 3 })) as fc.Arbitrary<Json>
  return fc
    .tuple(
      fc.array(fc.tuple(anyKey, anyJson), { maxLength: 4 }),
      fc.option(hooks, { nil: undefined }),
      fc.array(fc.tuple(anyKey, anyJson), { maxLength: 3 }),
    )
    .map(([before, middle, after]) => {
      const others = (entries: [string, Json][]) => entries.filter(([key]) => key !== 'hooks')
      return Object.fromEntries([
        ...others(before),
        ...(middle === undefined ? [] : [['hooks', middle] as const]),
        ...others(after),
      ])
    })
}

/** How somebody may have written it down: as a formatter would, or with any white space (and comments) anywhere. */
export const writings = (comments: boolean): fc.Arbitrary<(value: Json) => string> =>
  fc.oneof(
    fc
      .record({
        indent: fc.constantFrom(0, 2, 3, 4, '\t'),
        crlf: fc.boolean(),
        end: fc.constantFrom('', '\n'),
        mark: fc.boolean(),
      })
      .map(({ indent, crlf, end, mark }) => (value: Json) => {
        const text = JSON.stringify(value, null, indent) + end
        return (mark ? '\uFEFF' : '') + (crlf ? text.replaceAll('\n', '\r\n') : text)
      }),
    fc
      .array(
        fc.constantFrom('', '', ' ', '\n', '\n  ', '\t', ' \r\n', ...(comments ? [' // "x", }\n', '/* ] , */'] : [])),
        {
          minLength: 1,
          maxLength: 12,
        },
      )
      .map((gaps) => (value: Json) => {
        let at = 0
        const gap = () => gaps[at++ % gaps.length]!
        return gap() + spread(value, gap) + gap()
      }),
  )

function spread(value: Json, gap: () => string): string {
  const inside = (parts: readonly string[]) =>
    parts.length === 0 ? gap() : gap() + parts.join(`${gap()},${gap()}`) + gap()
  if (Array.isArray(value)) return `[${inside(value.map((each) => spread(each, gap)))}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  return `{${inside(Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}${gap()}:${gap()}${spread(each, gap)}`))}}`
}

export interface Sample {
  readonly client: ClientName
  readonly value: { [key: string]: Json }
  readonly text: string
}

/** Settings of some client, as text. */
export const samples: fc.Arbitrary<Sample> = fc
  .constantFrom(...CLIENT_NAMES)
  .chain((client) =>
    fc
      .tuple(settingsValues(client), writings(client === 'gemini'))
      .map(([value, write]) => ({ client, value, text: write(value) })),
  )

/** Takes our entries out of a value, without any of the code under test: what is left empty by that goes too. */
export function lessOurs(value: Json): Json {
  if (Array.isArray(value)) return value.filter((each) => !isOurs(each)).map(lessOurs)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, lessOurs(each)]))
}

const isOurs = (value: Json): boolean =>
  JSON.stringify(value).includes('--holdfast-hook') &&
  value !== null &&
  typeof value === 'object' &&
  ('type' in value || Object.keys(value).join() === 'hooks')
