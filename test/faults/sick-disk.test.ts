import { describe, expect, onTestFinished, test } from 'vitest'

import { canTrace } from '../../faults/power-loss/record.ts'
import { databaseFaults } from '../../faults/sick-disk/calls.ts'
import { casesOf, play } from '../../faults/sick-disk/case.ts'
import type { Case } from '../../faults/sick-disk/case.ts'
import { canMount } from '../../faults/sick-disk/mount.ts'
import { Room } from '../../faults/sick-disk/room.ts'
import { SCENARIOS } from '../../faults/sick-disk/scenarios.ts'
import { builtProgram } from '../support/built-program.ts'

/** Something of everything: so many calls of each kind that fails. */
function spread(cases: readonly Case[], most: number): Case[] {
  const kinds = Object.values(Object.groupBy(cases, ({ fault }) => `${fault.layer} ${fault.errno}`))
  return kinds.flatMap((kind) => kind[Math.floor(kind.length / 2)] ?? []).slice(0, most)
}

describe('the table of calls that fail', () => {
  const call = (text: string) => `7 1763300000.123456 ${text}`
  const read = (at: number) => call(`pread64(21</home/holdfast.db>, ""..., 4096, ${at}) = 4096`)
  const write = (bytes: number, at: number) => call(`pwrite64(22</home/holdfast.db-wal>, ""..., ${bytes}, ${at}) = 1`)
  const fsync = call('fsync(22</home/holdfast.db-wal>) = 0')
  const frames = [0, 1, 2, 3].flatMap((page) => [write(24, page * 4120), write(4096, page * 4120 + 24)])
  const shown = (trace: readonly string[], errno: string) =>
    databaseFaults(trace.join('\n'))
      .filter((fault) => fault.errno === errno)
      .map(({ call: name, nth }) => `${name} ${nth}`)

  test('numbers each kind of call by itself, as strace does', () => {
    const trace = [read(0), read(4096), write(32, 0), fsync, read(0), write(24, 32), fsync]
    const each = 'pread64 1, pread64 2, pwrite64 1, fsync 1, pread64 3, pwrite64 2, fsync 2'
    expect(shown(trace, 'EIO').join(', ')).toBe(each)
    expect(shown(trace, 'EMFILE')).toEqual([])
  })

  test('has of the pages of one commit the first and the last', () => {
    expect(shown([...frames, fsync, ...frames.slice(0, 2)], 'ENOSPC')).toEqual(
      [1, 2, 7, 8, 9, 10].map((nth) => `pwrite64 ${nth}`),
    )
  })

  test('says from which of each kind on a full disk refuses them', () => {
    const trace = [write(32, 0), call('ftruncate(22</home/holdfast.db-shm>, 3) = 0'), write(24, 32)]
    const since = databaseFaults(trace.join('\n')).filter(({ errno }) => errno === 'ENOSPC')
    expect(since.map((fault) => fault.since)).toEqual([
      { pwrite64: 1, ftruncate: 1 },
      { pwrite64: 2, ftruncate: 1 },
      { pwrite64: 2, ftruncate: 2 },
    ])
  })

  test('refuses calls of two threads: strace would let both fail', () => {
    expect(() => databaseFaults([read(0), read(0).replace('7', '8')].join('\n'))).toThrow('2 threads')
  })
})

test('a case that breaks has failed', async () => {
  const template = new Room('/nowhere')
  onTestFinished(() => template.remove())
  const act = () => Promise.reject(new Error('the database cannot be opened'))
  const { problems } = await play({
    scenario: { name: 'something is done', act },
    template,
    fault: { layer: 'program', errno: 'EIO', call: 'file', nth: 1 },
  })
  expect(problems).toEqual([expect.stringContaining('it broke: Error: the database cannot be opened')])
})

describe.runIf(canTrace())('a disk that fails is said with a code, and nothing that was acknowledged is lost', () => {
  test.each([
    { name: 'a message is sent', most: 6 },
    { name: 'a run is submitted to a new home', most: 2 },
  ])('when $name', async ({ name, most }) => {
    const cases = await casesOf(
      SCENARIOS.find((scenario) => scenario.name === name)!,
      await builtProgram(),
      canMount(),
    )
    onTestFinished(() => cases[0]?.template.remove())
    expect(cases.length).toBeGreaterThan(50)
    for (const each of spread(cases, most)) {
      const { faults, problems } = await play(each)
      expect(problems).toEqual([])
      expect(faults).toEqual({ [`${each.fault.errno} in ${each.fault.layer}`]: 1 })
    }
  })
})
