import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import type { ThreadId } from '../../src/base/ids.ts'
import { readWholeThread } from '../../src/runs/thread-view.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { startProcess } from '../support/holdfast.ts'

const PROGRAM = join(import.meta.dirname, 'fixtures/doomed-loop.ts')
const lines = (file: string) => readFileSync(file, 'utf8').split('\n').filter(Boolean)

/** Kills a program at a moment of its loop, starts it again, and says what it came to. */
async function killed(engine: TestEngine, loop: string, moment: string, flavour = 'probe') {
  const database = await engine.database()
  const folder = temporaryFolder()
  const ledger = join(folder, 'ledger.txt')
  const args = [PROGRAM, join(folder, 'home'), database.url, ledger, loop, moment, flavour]
  const start = () => startProcess(process.execPath, args, {}).ended
  const first = await start()
  expect({ code: first.code, stdout: first.stdout }, first.stderr).toEqual({ code: null, stdout: '' })
  const second = await start()
  expect({ code: second.code, stderr: second.stderr }).toEqual({ code: 0, stderr: '' })
  const asked = lines(`${ledger}.asked`).map((line) => line.split(' '))
  const thread = (await (await database.open()).read(readWholeThread, 'diary' as ThreadId, 99))!
  const { inputTokens, outputTokens } = thread.runs[0]!
  return {
    said: second.stdout.trim(),
    entries: lines(ledger).toSorted(),
    asked: asked.map(([step]) => Number(step)),
    /** How often the message stood in what the model was shown, for each time that it was asked. */
    heard: asked.map(([, times]) => Number(times)),
    /** What its thread shows of the model's words, and how many answers are on its bill: 10 tokens in and 5 out each. */
    thread: thread.entries.flatMap(({ kind, body }) => (kind === 'assistant' ? [body['text']] : [])),
    billed: [inputTokens / 10, outputTokens / 5],
    /** What a reader of the stream got, in each of the two processes. */
    read: [1, 2]
      .map((process) => `${ledger}.read-${process}`)
      .map((file) => (existsSync(file) ? readFileSync(file, 'utf8') : '')),
  }
}

const ALL = ['one', 'three', 'two']
const OVER = {
  said: 'All are noted.',
  entries: ALL,
  thread: ['', 'Now the third.', 'All are noted.'],
  billed: [3, 3],
}

describe.each(engines)('a loop of the AI SDK whose process is killed, and started again, on $name', (engine) => {
  const moments = [
    ['agent', 'after-one', [0, 1, 2], [0, 1, 1]],
    ['generate', 'asked-1', [0, 1, 1, 2], [0, 1, 1, 1]],
    ['generate', 'after-three', [0, 1, 2], [0, 1, 1]],
    ['stream', 'before-two', [0, 1, 2], [0, 1, 1]],
  ] as const
  // What is particular about an engine is how a claim is taken over: one moment shows that.
  test.each(engine.name === 'sqlite' ? moments : moments.slice(0, 1))(
    '%s, killed at %s: no recorded answer is asked for again, each effect is there once, and the message has been heard once [actions/once] [inbox/effect-once]',
    async (loop, moment, asked, heard) => {
      expect(await killed(engine, loop, moment)).toMatchObject({ ...OVER, asked, heard })
    },
  )

  test('who reads a stream that is cut off gets the beginning of the answer, and from the next process the whole of it; it is recorded and billed once', async () => {
    const read = ['Now ', 'Now the third.All are noted.']
    const [asked, heard] = [
      [0, 1, 1, 2],
      [0, 1, 1, 1],
    ]
    expect(await killed(engine, 'stream', 'read-1')).toEqual({ ...OVER, asked, heard, read })
  })
})

test('a tool without a probe that was cut off is in doubt, and is not used again [actions/no-blind-retry]', async () => {
  const { said, entries, asked } = await killed(engines[0]!, 'generate', 'after-three', 'plain')
  expect({ said, entries, asked }).toEqual({ said: 'in doubt: {"entry":"three"}', entries: ALL, asked: [0, 1] })
})
