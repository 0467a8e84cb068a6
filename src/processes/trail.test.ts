import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { systemRandomness } from '../base/ids.ts'
import { MARK_VARIABLE, carriesMark, readProcess, readProcessTable, type ProcessRow } from './process-table.ts'
import { findProcesses, killAll, sweepByMark, withDescendants, type Trail } from './trail.ts'

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

test('killing is over when they are dead, and not when they were told to die [control/stop-means-stopped]', async () => {
  const script = 'for each in 1 2 3 4 5 6 7 8; do sleep 600 & done; echo begun; wait'
  const child = spawn('/bin/sh', ['-c', script], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  await once(child.stdout, 'data')
  const pid = child.pid!
  const members = readProcessTable().filter(({ group }) => group === pid)
  // As of a command in a cgroup, which needs only one look that finds nothing.
  const leader = { pid, startTime: readProcess(pid)!.startTime }
  const killed = await killAll({ mark: 'none', since: 0, leader, cgroup: '/nowhere', holder: null })
  // The last one first, and nothing else in between: they need a moment to die.
  const alive = members.toReversed().filter((member) => readProcess(member.pid)?.dead === false)
  expect({ killed, alive }).toEqual({ killed: 9, alive: [] })
})

test.skipIf(process.platform !== 'linux')(
  'one that forks and ends at once, in a session of its own each time, does not get away [control/stop-means-stopped]',
  async () => {
    const mark = systemRandomness.hex(16)
    // Each lives for 20 ms; after a minute of that it ends, whatever became of this test.
    const hop = 'echo; sleep 0.02; [ "$2" -eq 0 ] || { setsid sh -c "$1" sh "$1" $(($2 - 1)) & }'
    const child = spawn('/bin/sh', ['-c', hop, 'sh', hop, '2000'], {
      detached: true,
      env: { PATH: process.env['PATH'], [MARK_VARIABLE]: mark },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    let hops = 0
    await new Promise<void>((resolve) =>
      child.stdout.on('data', (chunk: Buffer) => {
        hops += chunk.length
        if (hops > 5) resolve()
      }),
    )
    expect(await sweepByMark(mark)).toBeGreaterThan(0)
    const left = Array.from({ length: 8 }, () => readProcessTable().filter(({ pid }) => carriesMark(pid, mark)))
    expect(left.flat()).toEqual([])
  },
)

test.skipIf(process.platform !== 'linux')(
  'what a stranger who got the number of the leader starts while we look is left alone',
  async () => {
    // A child that was killed is told of. After ten thousand of them it ends, whatever became of this test.
    const script = 'for each in $(seq 10000); do /bin/true || echo killed; done'
    const stranger = spawn('/bin/sh', ['-c', script], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
    let said = ''
    stranger.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
    const leader = { pid: stranger.pid!, startTime: 1 }
    let killed = 0
    for (let look = 0; look < 20; look += 1)
      killed += await killAll({ mark: 'none', since: 0, leader, cgroup: null, holder: null })
    stranger.kill('SIGKILL')
    await once(stranger, 'close')
    expect({ killed, said }).toEqual({ killed: 0, said: '' })
  },
)
