import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { temporaryFolder } from '../support/engines.ts'
import { startProcess } from '../support/holdfast.ts'

const PROGRAM = join(import.meta.dirname, 'fixtures/doomed-loop.ts')
const lines = (file: string) => readFileSync(file, 'utf8').split('\n').filter(Boolean)

/** Kills a program at a moment of its loop, starts it again, and says what it came to. */
async function killed(loop: string, moment: string, flavour = 'probe') {
  const folder = temporaryFolder()
  const ledger = join(folder, 'ledger.txt')
  const args = [PROGRAM, join(folder, 'home'), ledger, loop, moment, flavour]
  const start = () => startProcess(process.execPath, args, {}).ended
  const first = await start()
  expect({ code: first.code, stdout: first.stdout }, first.stderr).toEqual({ code: null, stdout: '' })
  const second = await start()
  expect({ code: second.code, stderr: second.stderr }).toEqual({ code: 0, stderr: '' })
  const asked = lines(`${ledger}.asked`).map((line) => line.split(' '))
  return {
    said: second.stdout.trim(),
    entries: lines(ledger).toSorted(),
    asked: asked.map(([step]) => Number(step)),
    /** How often the message stood in what the model was shown, for each time that it was asked. */
    heard: asked.map(([, times]) => Number(times)),
  }
}

const ALL = ['one', 'three', 'two']

describe('a loop of the AI SDK whose process is killed, and started again', () => {
  test.each([
    ['generate', 'asked-1', [0, 1, 1, 2], [0, 1, 1, 1]],
    ['generate', 'after-three', [0, 1, 2], [0, 1, 1]],
    ['stream', 'middle-1', [0, 1, 1, 2], [0, 1, 1, 1]],
    ['stream', 'before-two', [0, 1, 2], [0, 1, 1]],
    ['agent', 'after-one', [0, 1, 2], [0, 1, 1]],
  ] as const)(
    '%s, killed at %s: no recorded answer is asked for again, each effect is there once, and the message has been heard once [actions/once] [inbox/effect-once]',
    async (loop, moment, asked, heard) => {
      expect(await killed(loop, moment)).toEqual({ said: 'All are noted.', entries: ALL, asked, heard })
    },
  )

  test('a tool without a probe that was cut off is in doubt, and is not used again [actions/no-blind-retry]', async () => {
    const { said, entries, asked } = await killed('generate', 'after-three', 'plain')
    expect({ said, entries, asked }).toEqual({ said: 'in doubt: {"entry":"three"}', entries: ALL, asked: [0, 1] })
  })
})
