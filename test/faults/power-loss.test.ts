import { describe, expect, test } from 'vitest'

import { ALL_LOST, choicesAt } from '../../faults/power-loss/choices.ts'
import { Disk } from '../../faults/power-loss/disk.ts'
import type { State } from '../../faults/power-loss/disk.ts'
import { playLife } from '../../faults/power-loss/play.ts'
import { canTrace } from '../../faults/power-loss/record.ts'
import type { Happened } from '../../faults/power-loss/trace.ts'
import { Dice } from '../../faults/simulation/seeded.ts'

describe('a disk that loses its power', () => {
  const path = '/disk/file'
  const created: Happened = { kind: 'opened', path, creates: true, empties: false }
  const wrote = (text: string): Happened => ({ kind: 'wrote', path, bytes: Buffer.from(text) })
  const synced = (what: string, sync: number): Happened[] => [
    { kind: 'sync-asked', path: what, sync },
    { kind: 'synced', path: what, sync },
  ]
  const after = (...happened: readonly Happened[]) => {
    const disk = new Disk('/disk', { folders: [] })
    for (const each of happened) disk.take(each)
    return [...new Set(choicesAt(disk, new Dice(1), 0).map((choice) => shown(disk.state(choice))))].toSorted()
  }
  const shown = ({ files }: State) =>
    [...files].map(([name, content]) => `${name}=${content().toString()}`).join() || '-'

  test('keeps what was synced with its folder, and of the rest anything', () => {
    expect(after(created, wrote('one'))).toEqual(['-', 'file=', 'file=\0\0\0', 'file=one'])
    expect(after(created, wrote('one'), ...synced(path, 1))).toEqual(['-', 'file=one'])
    expect(after(created, ...synced('/disk', 1), wrote('one'))).toEqual(['file=', 'file=\0\0\0', 'file=one'])
    expect(after(created, wrote('one'), ...synced(path, 1), ...synced('/disk', 2))).toEqual(['file=one'])
  })

  test('may keep a name without the bytes that were renamed to it, or the old bytes under it', () => {
    const next = '/disk/next'
    const happened: readonly Happened[] = [
      created,
      wrote('old'),
      ...synced(path, 1),
      ...synced('/disk', 2),
      { kind: 'opened', path: next, creates: true, empties: false },
      { kind: 'wrote', path: next, bytes: Buffer.from('new') },
      { kind: 'renamed', from: next, path },
    ]
    expect(after(...happened)).toEqual(expect.arrayContaining(['file=', 'file=new', 'file=old']))
    expect(after(...happened, ...synced('/disk', 3))).toEqual(['file=', 'file=new'])
  })

  test('keeps what was written out with the next sync of anything beside it, in the same file system', () => {
    const [one, two] = ['/disk/a/one', '/disk/b/two']
    const disk = new Disk('/disk', { folders: ['a', 'b'], files: new Map() })
    for (const each of [one, two]) {
      disk.take({ kind: 'opened', path: each, creates: true, empties: false })
      disk.take({ kind: 'wrote', path: each, bytes: Buffer.from('bytes') })
      disk.take({ kind: 'written-out', path: each })
    }
    for (const each of synced('/disk/a', 1)) disk.take(each)
    expect(disk.uncertain().changes).toHaveLength(1)
    for (const each of synced('/disk/b', 2)) disk.take(each)
    expect(shown(disk.state({ fault: ALL_LOST, keeps: () => false }))).toBe('a/one=bytes,b/two=bytes')
  })

  test('keeps two names of one file, and what a link says', () => {
    const disk = new Disk('/disk', {
      folders: [],
      files: new Map([['file', { content: Buffer.from('one'), executable: true }]]),
    })
    disk.take({ kind: 'linked', from: path, path: '/disk/other' })
    disk.take({ kind: 'pointed', path: '/disk/pointer', target: 'file' })
    const { second, executables, pointers } = disk.state({ fault: 'none', keeps: () => true })
    expect([...second]).toEqual([['other', 'file']])
    expect([...executables]).toEqual(['file', 'other'])
    expect([...pointers]).toEqual([['pointer', 'file']])
  })

  test('of many writes loses some, each another one', () => {
    const disk = new Disk('/disk', { folders: [] })
    for (const each of [created, ...synced('/disk', 1), ...Array.from('1234567', wrote)]) disk.take(each)
    for (const seed of [1, 2, 3, 4]) {
      const lost = choicesAt(disk, new Dice(seed), 0).filter(({ fault }) => fault === 'one write lost')
      expect(lost).toHaveLength(6)
      expect(new Set(lost.map((choice) => shown(disk.state(choice)))).size).toBe(6)
    }
  })

  test('does not keep for certain what was written after its sync was asked for', () => {
    const asked: Happened = { kind: 'sync-asked', path, sync: 2 }
    const answered: Happened = { kind: 'synced', path, sync: 2 }
    const happened = [created, ...synced('/disk', 1), wrote('one'), asked, wrote('two'), answered]
    expect(after(...happened)).toEqual(['file=one', 'file=one\0\0\0', 'file=onetwo'])
  })
})

test.runIf(canTrace())('a life that does not come to its end has failed', async () => {
  const { problems } = await playLife('no such life', 1, { randoms: 0 })
  expect(problems).toEqual([expect.stringContaining('it broke: Error: the life "no such life" of seed 1 did not come')])
})

describe.runIf(canTrace())('what was acknowledged before a power loss is there after it', () => {
  /** Each once lost something: the folders that a hook made were not synced. */
  test.each([
    { kind: 'hooks', seed: 2, what: 'what hooks told, to the store and into the spool' },
    { kind: 'calls', seed: 1, what: 'calls of functions, their steps and results' },
  ])('$what [seed $seed]', async ({ kind, seed }) => {
    const { faults, problems } = await playLife(kind, seed, { randoms: 1, states: 60 })
    expect(problems).toEqual([])
    expect(Object.values(faults).reduce((sum, times) => sum + times)).toBeGreaterThan(20)
  })

  /** Each once lost what it had been told: git syncs no folder. Of the states in between `--method power-loss` looks at many more. */
  test.each([
    { kind: 'landing', what: 'on the branch that is checked out' },
    { kind: 'landingAside', what: 'on a branch that is not' },
    { kind: 'keeping', what: 'nowhere, and was kept by a person' },
  ])('what a git transaction has landed $what, with its files, as git itself says', async ({ kind }) => {
    const { faults, problems } = await playLife(kind, 1, { randoms: 0, states: 1 })
    expect(problems).toEqual([])
    expect(faults[ALL_LOST]).toBeGreaterThan(1)
  })
})
