import { expect, test } from 'vitest'

import { ABOUT, TYPES_ABOUT } from '../../dashboard/src/look/event-types.ts'
import { ENDPOINT_NAMES } from '../../src/api/endpoints.ts'
import { CALL_QUEUED } from '../../src/runs/call.ts'
import { EVENT_TYPES } from '../../src/events/event.ts'
import { sourcesBelow } from './tree.ts'
import type { SourceFile } from './tree.ts'

const types: ReadonlySet<string> = new Set(EVENT_TYPES)
const nounOf = (type: string) => type.slice(0, type.indexOf('.'))
const nouns = [...new Set(EVENT_TYPES.map(nounOf))]

/** What the page shows among all events, under no heading of its own. */
const WITHOUT_HEADING = [
  'breaker',
  'history',
  'hook',
  'notice',
  'occurrence',
  'schedule',
  'step',
  'thread',
  'tool',
  'workspace',
]

test('under each heading of the page’s log are all events of that noun, and only such as there are', () => {
  expect(ABOUT.map(([about]) => about).filter((about) => about !== '')).toEqual(Object.keys(TYPES_ABOUT))
  for (const [about, shown] of Object.entries(TYPES_ABOUT)) {
    expect(shown.filter((type) => !types.has(type))).toEqual([])
    expect(EVENT_TYPES.filter((type) => nounOf(type) === about && !shown.includes(type))).toEqual([])
  }
})

test('a noun that is new in the log has a heading, or was left without one on purpose', () => {
  const shown = new Set(Object.values(TYPES_ABOUT).flat())
  const missing = EVENT_TYPES.filter((type) => !shown.has(type)).map(nounOf)
  expect([...new Set(missing)].toSorted()).toEqual(WITHOUT_HEADING)
})

const others: ReadonlySet<string> = new Set([...ENDPOINT_NAMES, CALL_QUEUED, 'hook.cjs'])
const WORD = new RegExp(`(?<=['"\`])(?:${nouns.join('|')})\\.[a-z_]*(?=['"\`])`, 'g')

/** Words that look like an event, or the beginning of some, and are none. */
const unknownIn = (files: readonly SourceFile[]): string[] =>
  files.flatMap(({ path, text }) =>
    [...text.matchAll(WORD)]
      .map(([word]) => word)
      .filter((word) => !types.has(word) && !others.has(word) && !(word.endsWith('.') && nouns.includes(nounOf(word))))
      .map((word) => `${path}: there is no event ${word}`),
  )

/** Events of command-line clients, names of spans; and tests. */
const NAMES_OF_OTHERS = /^src\/(clients|telemetry)\/|\.test\.ts$/

test('whatever waits for an event, or tells of one, names one that there is', () => {
  const files = sourcesBelow('src', 'dashboard/src').filter(({ path }) => !NAMES_OF_OTHERS.test(path))
  expect(unknownIn(files)).toEqual([])
  const named = new Set(files.flatMap(({ text }) => [...text.matchAll(WORD)].map(([word]) => word)))
  expect(named.size).toBeGreaterThan(50)
})

test('a planted name that no event has is found', () => {
  const text = `if (type === 'run.ended') wakes(['message.', 'run.finished'], "policy.list")`
  expect(unknownIn([{ path: 'a.ts', text }])).toEqual(['a.ts: there is no event run.ended'])
})
