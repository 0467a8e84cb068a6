import { expect, test } from 'vitest'

import { DECISION } from '../../runs/park.ts'
import { stateOf } from './schedule-show.ts'
import type { OccurrenceView } from '../words/views.ts'

const dispatched = (more: Partial<OccurrenceView>) => ({ state: 'dispatched', ...more }) as OccurrenceView

test.each([
  ['in the inbox', {}],
  ['queued', { runState: 'queued' }],
  ['at work', { runState: 'running' }],
  ['waiting for a person', { runState: 'parked', runParkedFor: DECISION }],
  ['parked', { runState: 'parked', runParkedFor: 'children' }],
] as const)('a firing that is under way is what its run is: %s', (words, more) => {
  expect(stateOf(dispatched(more))).toBe(words)
})
