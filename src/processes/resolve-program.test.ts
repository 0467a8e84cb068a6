import { expect, test } from 'vitest'
import { resolveProgram, type Look } from './resolve-program.ts'

const disk: Record<string, Look> = {
  '/bin/tool': 'executable',
  '/first/tool': 'not-executable',
  '/home/run.sh': 'executable',
  '/home/notes': 'not-executable',
}
const find = (name: string, path?: string) =>
  resolveProgram(name, { cwd: '/home', path }, (file) => disk[file] ?? 'absent')

test.each([
  ['tool', '/first:/bin', '/bin/tool'],
  ['/bin/tool', '', '/bin/tool'],
  ['./run.sh', '/bin', '/home/run.sh'],
  ['run.sh', ':/bin', '/home/run.sh'],
  ['tool', undefined, '/bin/tool'],
])('"%s" on "%s" is %s', (name, path, found) => {
  expect(find(name, path)).toEqual({ kind: 'found', path: found })
})

test.each([
  ['nothing', '/bin', 127, 'not found: nothing'],
  ['', '/bin', 127, 'not found: '],
  ['run.sh', '/bin', 127, 'not found: run.sh'],
  ['tool', '/first', 126, 'not executable: tool'],
  ['./notes', '/bin', 126, 'not executable: ./notes'],
])('"%s" on "%s" is refused with %i', (name, path, exitCode, message) => {
  expect(find(name, path)).toMatchObject({ kind: 'refused', exitCode, message })
})
