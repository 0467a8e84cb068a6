import { expect, test } from 'vitest'

import type { HeldAttempt } from '../runs/recover.ts'
import { groundFor } from './recover.ts'

const held = { host: null, startingAt: 1, releasedAt: null, leaseOver: 1 } as HeldAttempt

test.each([
  { owner: 'dead', than: {}, ground: 'owner-dead' },
  { owner: 'dead', than: { leaseOver: 0 }, ground: 'owner-dead' },
  { owner: 'alive', than: {}, ground: 'lease-over' },
  { owner: 'alive', than: { leaseOver: 0 }, ground: undefined },
  { owner: 'alive', than: { leaseOver: 0, releasedAt: 1 }, ground: 'released' },
  { owner: 'unreachable', than: {}, ground: undefined },
  { owner: 'unreachable', than: { startingAt: null }, ground: 'unstarted' },
  { owner: 'unreachable', than: { startingAt: null, leaseOver: 0 }, ground: undefined },
  { owner: 'unreachable', than: { startingAt: null, host: 'there' }, ground: undefined },
] as const)('a run whose worker is $owner, with $than, is taken because: $ground [runs/fenced]', (each) => {
  expect(groundFor({ ...held, ...each.than }, each.owner)).toBe(each.ground)
})
