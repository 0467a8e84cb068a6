import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, onTestFinished, test } from 'vitest'

import { isOpen } from '../../src/git/tree.ts'
import { smallDisk } from '../support/small-disk.ts'
import { GitWorld, listing } from './git-world.ts'

const canMount = process.getuid?.() === 0

describe.runIf(canMount)('on a disk that is full', () => {
  const BIG = 'line of a file that is long enough to need room on a disk\n'.repeat(400)

  test('opening, taking a snapshot and landing fail closed, and go on when there is room [workspace/all-or-nothing]', async () => {
    const disk = smallDisk('8m')
    if (disk === undefined) return
    const world = new GitWorld(disk.folder)
    const repo = await world.start()
    const before = listing(world.project)
    const full = async <T>(what: () => Promise<T>): Promise<T> => {
      disk.fill()
      await expect(what()).rejects.toMatchObject({ code: 'files/full' })
      disk.free()
      return what()
    }

    const place = await full(() => world.opened(repo))
    expect(await isOpen(place)).toBe(true)
    world.write({ 'a.txt': BIG, 'x/y.txt': BIG, 'c.txt': '' }, place.tree)
    const work = await full(() => world.take(repo, place))
    expect(work.changedCount).toBe(3)
    disk.fill()
    await expect(world.land(repo, work.commit)).rejects.toMatchObject({ code: 'files/full' })
    expect(listing(world.project)).toEqual(before)
    expect(world.tip()).toBe(repo.commit)
    disk.free()
    expect(await world.land(repo, work.commit)).toEqual({ kind: 'landed', followed: true })
    expect(listing(world.project)).toEqual(listing(place.tree))
    expect(world.status()).toBe('')
    expect(world.fsck()).toBe('')
  })

  test('a landing whose disk fills at any of its steps puts everything back, or lands whole', async () => {
    const disk = smallDisk('8m')
    if (disk === undefined) return
    const world = new GitWorld(disk.folder)
    const repo = await world.start()
    const before = listing(world.project)
    const place = await world.opened(repo)
    world.write({ 'a.txt': BIG, 'x/y.txt': BIG, 'dir/b.txt': BIG }, place.tree)
    const { commit } = await world.take(repo, place)
    let ends = 0
    for (let nth = 1; nth < 30; nth++) {
      let passed = 0
      const point = () => {
        passed += 1
        if (passed === nth) disk.fill()
      }
      const filling = Object.assign(Object.create(world) as GitWorld, { git: { ...world.git, point } })
      const end = await filling.land(repo, commit).catch((error: unknown) => error)
      if (world.tip() !== repo.commit || passed < nth) break
      ends += 1
      expect(end).toMatchObject({ code: 'files/full' })
      expect(listing(world.project)).toEqual(before)
      disk.free()
    }
    disk.free()
    expect(ends).toBeGreaterThan(3)
    expect(await world.land(repo, commit)).toEqual({ kind: 'landed', followed: true })
    expect(listing(world.project)).toEqual(listing(place.tree))
    expect(world.status()).toBe('')
    expect(world.fsck()).toBe('')
  })
})

test.runIf(canMount)('a part of the tree on another file system keeps its files, and the work waits', async () => {
  const world = new GitWorld()
  const repo = await world.start()
  const { commit } = await world.work(repo, { 'a.txt': 'new\n', 'volume/new.txt': 'n\n' })
  const volume = join(world.project, 'volume')
  mkdirSync(volume)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', volume], { stdio: 'ignore' })
  } catch {
    return
  }
  onTestFinished(() => void execFileSync('umount', ['-l', volume]))
  expect(await world.land(repo, commit)).toMatchObject({ kind: 'ready', code: 'file-system' })
  expect(world.read('a.txt')).toBe('a\n')
  expect(world.status()).toBe('')
  expect(world.has('.git/index.lock')).toBe(false)
})
