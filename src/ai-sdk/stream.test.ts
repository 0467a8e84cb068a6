import { expect, test } from 'vitest'

import { Streaming } from './stream.ts'
import type { Part } from './stream.ts'

const words = (delta: string): Part => ({ type: 'text-delta', id: 't', delta })
const call: Part = { type: 'tool-call', toolCallId: 'one', toolName: 'note', input: '{}' }
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}
const finish: Part = { type: 'finish', usage, finishReason: { unified: 'tool-calls', raw: undefined } }
const start: Part = { type: 'stream-start', warnings: [] }

const streamOf = (...parts: readonly Part[]) => ReadableStream.from<Part>(parts)

/** What can be read of it now, and whether that is all. */
async function readNow(reader: ReadableStreamDefaultReader<Part>, count: number): Promise<string[]> {
  const types: string[] = []
  for (let read = 0; read < count; read += 1) types.push((await reader.read()).value?.type ?? 'end')
  return types
}

test('words go through as they come; from the first call on everything waits until it is recorded', async () => {
  const streaming = new Streaming()
  const recorded = Promise.withResolvers<void>()
  const heard = streaming.hear(streamOf(start, words('Now '), words('this.'), call, words('And that.'), finish))
  const ended = heard.then(async ({ reply }) => {
    await recorded.promise
    streaming.end(reply)
  })
  await streaming.begins(ended)
  const reader = streaming.readable.getReader()
  expect(await readNow(reader, 3)).toEqual(['stream-start', 'text-delta', 'text-delta'])
  await heard
  const next = reader.read()
  expect(await Promise.race([next, Promise.resolve('nothing yet')])).toBe('nothing yet')
  recorded.resolve()
  expect((await next).value?.type).toBe('tool-call')
  expect(await readNow(reader, 3)).toEqual(['text-delta', 'finish', 'end'])
})

test('neighbouring words are recorded as one, raw bytes not at all', async () => {
  const raw: Part = { type: 'raw', rawValue: { much: 'of it' } }
  const { reply } = await new Streaming().hear(streamOf(words('One '), raw, words('two.'), { type: 'ping' }, finish))
  expect(reply).toEqual([words('One two.'), finish])
})

test('what fails before a word fails the call; what fails later is part of the stream', async () => {
  const broken = new Error('the line went dead')
  const early = new Streaming()
  await expect(early.begins(early.hear(streamOf(start, { type: 'error', error: broken })).then(() => {}))).rejects.toBe(
    broken,
  )
  expect(early.isBegun).toBe(false)
  const late = new Streaming()
  await late.begins(late.hear(streamOf(words('So '), { type: 'error', error: broken })).then(() => {}))
  expect(late.isBegun).toBe(true)
  expect(await readNow(late.readable.getReader(), 3)).toEqual(['text-delta', 'error', 'end'])
})

test('from the record the whole is streamed', async () => {
  const streaming = new Streaming()
  await streaming.begins(Promise.resolve().then(() => streaming.end([words('As before.'), finish])))
  expect(await readNow(streaming.readable.getReader(), 3)).toEqual(['text-delta', 'finish', 'end'])
})
