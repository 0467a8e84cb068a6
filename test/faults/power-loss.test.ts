import { describe, expect, test } from 'vitest'

import { choicesAt } from '../../faults/power-loss/choices.ts'
import { Disk } from '../../faults/power-loss/disk.ts'
import type { State } from '../../faults/power-loss/disk.ts'
import { unsyncedWhenTold } from '../../faults/power-loss/landing.ts'
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
    const disk = new Disk('/disk', [])
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

  test('does not keep for certain what was written after its sync was asked for', () => {
    const asked: Happened = { kind: 'sync-asked', path, sync: 2 }
    const answered: Happened = { kind: 'synced', path, sync: 2 }
    const happened = [created, ...synced('/disk', 1), wrote('one'), asked, wrote('two'), answered]
    expect(after(...happened)).toEqual(['file=one', 'file=one\0\0\0', 'file=onetwo'])
  })
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

  test.each([
    { life: 'landing', where: 'on the branch that is checked out' },
    { life: 'landingAside', where: 'on a branch that is not' },
  ] as const)('what a git transaction has landed $where, wherever the home folder is', async ({ life }) => {
    const { names, unsynced } = await unsyncedWhenTold(life)
    expect(unsynced).toEqual([])
    expect(names).toBeGreaterThan(5)
  })
})
