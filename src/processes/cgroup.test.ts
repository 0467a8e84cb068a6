import { expect, test } from 'vitest'
import { ownCgroup } from './cgroup.ts'

const line = (root: string, point: string, kind = 'cgroup2') =>
  `41 31 0:38 ${root} ${point} rw,relatime - ${kind} x rw\n`

test.each([
  ['the whole tree', line('/', '/sys/fs/cgroup'), '0::/user.slice/a.scope', '/sys/fs/cgroup/user.slice/a.scope'],
  ['the root', line('/', '/sys/fs/cgroup'), '0::/', '/sys/fs/cgroup/'],
  ['both versions at once', line('/', '/x', 'cgroup') + line('/', '/y'), '3:cpu:/c\n0::/d\n', '/y/d'],
  ['a part of the tree', line('/docker/1', '/sys/fs/cgroup'), '0::/docker/1/sub', '/sys/fs/cgroup/sub'],
  ['a blank in the path', line('/', '/a\\040b'), '0::/c', '/a b/c'],
  ['a part that we are not in', line('/docker/1', '/sys/fs/cgroup'), '0::/docker/12', undefined],
  ['a place outside of our view', line('/', '/sys/fs/cgroup'), '0::/../other', undefined],
  ['version 1 only', line('/', '/x', 'cgroup'), '3:cpu:/c', undefined],
])('own cgroup with %s', (_, mountinfo, membership, expected) => {
  expect(ownCgroup(mountinfo, membership)).toBe(expected)
})
