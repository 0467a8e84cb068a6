import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { answerOf, carriesMark, nestMark, parsePs, parseStat, readProcess, readProcessTable } from './process-table.ts'

const stat = (name: string, state: string, threads: number) =>
  `4242 (${name}) ${state} 17 4240 4200 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 ${threads} 0 987654 1000 10 18446744073709551615 1 1`

test.each(['sh', 'a b', 'evil) R 1 1 1', '((', ''])('the name "%s" does not confuse the fields', (name) => {
  expect(parseStat(stat(name, 'S', 1))).toEqual({
    pid: 4242,
    parent: 17,
    group: 4240,
    session: 4200,
    foreground: -1,
    startTime: 987654,
    dead: false,
  })
})

test('a zombie is dead, a zombie leader with living threads is not', () => {
  expect(parseStat(stat('sh', 'Z', 1))?.dead).toBe(true)
  expect(parseStat(stat('sh', 'Z', 3))?.dead).toBe(false)
  expect(parseStat('nonsense')).toBeUndefined()
})

test('lines of ps are read', () => {
  const text =
    '  501     1   501      0 Ss   Sun Nov 15 09:43:01 2026\n  777   501   501      0 Z    Sun Nov 15 09:44:01 2026    \n'
  expect(parsePs(text)).toEqual([
    { pid: 501, parent: 1, group: 501, session: 501, startTime: Date.parse('Sun Nov 15 09:43:01 2026'), dead: false },
    { pid: 777, parent: 501, group: 501, session: 501, startTime: Date.parse('Sun Nov 15 09:44:01 2026'), dead: true },
  ])
})

test('the table holds this process, once', () => {
  expect(readProcessTable().filter((row) => row.pid === process.pid)).toEqual([readProcess(process.pid)])
})

test('a mark is found alone and nested, and nothing else is', async () => {
  const env = { HOLDFAST_MARK: nestMark(nestMark(undefined, 'aaa1'), 'bbb2'), OTHER: 'HOLDFAST_MARK=ccc3' }
  const child = spawn('/bin/cat', { env, stdio: ['pipe', 'ignore', 'ignore'] })
  await once(child, 'spawn')
  const pid = child.pid as number
  expect(['aaa1', 'bbb2', 'ccc3', 'aaa', ''].filter((mark) => carriesMark(pid, mark))).toEqual(['aaa1', 'bbb2'])
  child.stdin.end()
  await once(child, 'exit')
  expect(carriesMark(pid, 'aaa1')).toBe(false)
})

test('a program that could not be started, or was killed, has given no answer; one that says no has', () => {
  const ask = (script: string) => answerOf(() => execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8' }))
  expect([ask('echo it'), ask('echo some; exit 1')]).toEqual(['it\n', 'some\n'])
  expect(() => ask('kill -9 $$')).toThrow('Command failed')
  expect(() => answerOf(() => execFileSync('/no/such/ps', { encoding: 'utf8' }))).toThrow('ENOENT')
})
