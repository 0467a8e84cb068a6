import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { temporaryFolder } from '../support/engines.ts'
import { builtFixture } from '../support/built-fixture.ts'
import { startProcess, until } from '../support/holdfast.ts'

const PROGRAM = builtFixture(new URL('fixtures/doomed-program.ts', import.meta.url))

const lines = (file: string) => readFileSync(file, 'utf8').split('\n').filter(Boolean)
const words = (file: string) => lines(file).map((line) => line.split(' ')[0])

/** Kills a program in the middle of a write of its own, starts it again, and says what is in its ledger. */
async function killed(flavour: string, when: 'before' | 'after') {
  const folder = temporaryFolder()
  const ledger = join(folder, 'ledger.txt')
  const start = () => startProcess(process.execPath, [PROGRAM, join(folder, 'home'), flavour, ledger, when], {}).ended
  const first = await start()
  expect({ code: first.code, stdout: first.stdout }).toEqual({ code: null, stdout: '' })
  const second = await start()
  expect(second).toMatchObject({ code: 0, stderr: '' })
  const end = JSON.parse(second.stdout) as { states: string[]; state: string; attempt: number }
  expect(end).toMatchObject({ state: 'succeeded', attempt: 2 })
  const tries = lines(`${ledger}.tries`).filter((line) => line.startsWith('two '))
  return { states: end.states, entries: words(ledger), keys: new Set(tries).size, tries: tries.length }
}

const ALL_DONE = ['one done', 'two done', 'three done']
const ONCE = ['one', 'two', 'three']

describe('a program that is killed in the middle of its own tool, and started again', () => {
  test.each([
    ['before', ['one', 'three']],
    ['after', ONCE],
  ] as const)(
    'a write, killed %s its effect: in doubt, never run again [actions/no-blind-retry] [actions/once]',
    async (when, entries) => {
      const end = await killed('plain', when)
      expect(end).toEqual({ states: ['one done', 'two in_doubt', 'three done'], entries, keys: 1, tries: 1 })
    },
  )

  test.each(['before', 'after'] as const)(
    'a write with a probe, killed %s its effect: once [actions/once]',
    async (when) => {
      const tries = when === 'before' ? 2 : 1
      expect(await killed('probe', when)).toEqual({ states: ALL_DONE, entries: ONCE, keys: 1, tries })
    },
  )

  test.each(['before', 'after'] as const)(
    'a write that honours its key, killed %s its effect: again, by the same key, once [actions/once]',
    async (when) => {
      expect(await killed('idempotent', when)).toEqual({ states: ALL_DONE, entries: ONCE, keys: 1, tries: 2 })
    },
  )

  test('a read is simply performed again', async () => {
    const end = await killed('read', 'before')
    expect(end).toMatchObject({ entries: expect.arrayContaining(ONCE) as string[], tries: 2 })
    expect(end.states.toSorted()).toEqual(ALL_DONE.toSorted())
  })
})

test('a program that is paused in the middle of a write and taken over: its probe is not believed, nothing happens twice [actions/once]', async () => {
  const folder = temporaryFolder()
  const ledger = join(folder, 'ledger.txt')
  const [program, config] = ['fixtures/asking-program.ts', '../support/pausing.config.ts']
  const args = [join(import.meta.dirname, program), join(folder, 'home'), join(import.meta.dirname, config), 'prober']
  const start = () => startProcess(process.execPath, args, { LEDGER: ledger })
  const paused = start()
  await until('it is in the middle', () => Promise.resolve(existsSync(`${ledger}.paused`) || undefined))
  const taker = await start().ended
  expect(taker).toMatchObject({ code: 0, stdout: 'in_doubt\nsucceeded\n' })
  expect(existsSync(ledger)).toBe(false)
  paused.kill('SIGCONT')
  await paused.ended
  expect(words(ledger)).toEqual(['milk'])
})
