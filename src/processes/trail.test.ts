import { expect, test } from 'vitest'
import type { ProcessRow } from './process-table.ts'
import { findProcesses, withDescendants, type Trail } from './trail.ts'

const row = (pid: number, parent: number, more: Partial<ProcessRow> = {}): ProcessRow => ({
  pid,
  parent,
  group: 1,
  session: 1,
  startTime: 100,
  dead: false,
  ...more,
})
const pids = (rows: readonly ProcessRow[]) => rows.map(({ pid }) => pid).toSorted((a, b) => a - b)

test('descendants are found by parent and by session, at any depth and in any order', () => {
  const rows = [row(13, 12), row(12, 11), row(11, 10), row(10, 1), row(20, 1, { session: 12 }), row(30, 1)]
  expect(pids(withDescendants(rows, ({ pid }) => pid === 11))).toEqual([11, 12, 13, 20])
})

// Numbers far above any real process, so that no environment is read by accident.
const base = 2 ** 30
const trail: Trail = { mark: 'x', since: 100, leader: { pid: base, startTime: 100 }, cgroup: null, holder: null }

test('what is in the group or session of the leader belongs to the command, also after its death', () => {
  const rows = [row(base + 1, 1, { group: base }), row(base + 2, 1, { session: base }), row(base + 3, 1)]
  expect(pids(findProcesses(trail, rows))).toEqual([base + 1, base + 2])
})

test('zombies and processes older than the command do not', () => {
  const rows = [row(base + 1, 1, { group: base, dead: true }), row(base + 2, 1, { group: base, startTime: 99 })]
  expect(findProcesses(trail, rows)).toEqual([])
})

test('a stranger who got the number of the leader is left alone, with its group', () => {
  const rows = [row(base, 1, { group: base, session: base, startTime: 500 }), row(base + 1, base, { group: base })]
  expect(findProcesses(trail, rows)).toEqual([])
})
