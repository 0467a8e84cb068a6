import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'

import type { ThreadId } from '../base/ids.ts'
import type { ModelRequest } from '../loop/ports.ts'
import { FakeClock } from '../testing/fake-clock.ts'
import type { Script } from './script.ts'
import { scriptedModel } from './scripted.ts'

const never = new AbortController().signal
const asking = (replies: number, more: Partial<ModelRequest> = {}): ModelRequest => ({
  system: '',
  messages: [],
  tools: [],
  replies,
  purpose: 'turn',
  ...more,
})
const said = (text: string) => [{ role: 'user', text }] as const

const script: Script = {
  replies: [
    { text: 'one' },
    { error: { status: 429, retryAfter: '2' } },
    { error: { status: 529 } },
    { text: 'two', toolCalls: [{ tool: 'ledger_append', input: { entry: 'a' } }, { tool: 'look' }] },
  ],
}

test('the k-th reply of a thread is the k-th of the script, whoever asks how often', async () => {
  const model = scriptedModel({ replies: [{ text: 'one' }, { text: 'two' }] })
  const texts = []
  for (const replies of [0, 1, 1, 0]) texts.push((await model.generate(asking(replies), { signal: never })).text)
  expect(texts).toEqual(['one', 'two', 'two', 'one'])
})

test('tool calls have ids that are the same each time', async () => {
  const model = scriptedModel({ replies: [{ text: '' }, script.replies[3]!] })
  const reply = await model.generate(asking(1), { signal: never })
  expect(reply).toEqual(
    await scriptedModel({ replies: [{ text: '' }, script.replies[3]!] }).generate(asking(1), { signal: never }),
  )
  expect(reply).toEqual({
    text: 'two',
    toolCalls: [
      { id: 'call_2_1', tool: 'ledger_append', input: { entry: 'a' } },
      { id: 'call_2_2', tool: 'look', input: {} },
    ],
    usage: { inputTokens: 0, outputTokens: 0, costMicrousd: 0 },
    finish: 'tool-calls',
  })
})

describe('errors in a script', () => {
  const tries = async (model = scriptedModel(script), request = asking(1)) =>
    model.generate(request, { signal: never }).then(
      ({ text }) => text,
      (error: { status: number; retryAfterMs?: number }) => [error.status, error.retryAfterMs],
    )

  test('stand for one failed try each, before the reply that follows them', async () => {
    const model = scriptedModel(script)
    expect(await tries(model, asking(0))).toBe('one')
    expect([await tries(model), await tries(model), await tries(model)]).toEqual([
      [429, 2_000],
      [529, undefined],
      'two',
    ])
  })

  test('are met by a run that was parked in between only once, and again by a new process', async () => {
    const model = scriptedModel(script)
    await tries(model)
    expect(await tries(model, structuredClone(asking(1)))).toEqual([529, undefined])
    expect(await tries(scriptedModel(script))).toEqual([429, 2_000])
  })

  test('are met by each thread for itself', async () => {
    const model = scriptedModel(script)
    const [left, right] = [asking(1, { messages: said('left') }), asking(1, { messages: said('right') })]
    const met = []
    for (const request of [left, right, left, right, left, right]) met.push(await tries(model, request))
    expect(met).toEqual([[429, 2_000], [429, 2_000], [529, undefined], [529, undefined], 'two', 'two'])
    const named = (name: string) => ({ ...asking(1), threadId: name as ThreadId })
    expect([await tries(model, named('a')), await tries(model, named('b'))]).toEqual([
      [429, 2_000],
      [429, 2_000],
    ])
  })

  test('carry what the failed try cost, and may be a broken connection [T8]', async () => {
    const usage = { inputTokens: 5 }
    const model = scriptedModel({
      replies: [
        { error: {}, usage },
        { text: 'yes', usage },
      ],
    })
    await expect(model.generate(asking(0), { signal: never })).rejects.toMatchObject({
      code: 'model/connection',
      usage: { inputTokens: 5, outputTokens: 0, costMicrousd: 0 },
    })
    expect((await model.generate(asking(0), { signal: never })).usage.inputTokens).toBe(5)
  })
})

test('side calls use nothing up', async () => {
  const model = scriptedModel({ replies: [{ error: { status: 500 } }, { text: 'one' }] })
  const aside = await model.generate(asking(0, { purpose: 'side', messages: said('x') }), { signal: never })
  expect(aside).toMatchObject({ text: 'A conversation of 1 messages.', toolCalls: [] })
  await expect(model.generate(asking(0), { signal: never })).rejects.toMatchObject({ status: 500 })
})

test('side calls may have replies of their own, failures among them, and replies may be cut off', async () => {
  const model = scriptedModel({
    replies: [{ text: 'half a', finish: 'length' }],
    side: [{ error: { status: 429 } }, { text: 'In short.', usage: { inputTokens: 9 } }],
  })
  const aside = () => model.generate(asking(0, { purpose: 'side' }), { signal: never })
  await expect(aside()).rejects.toMatchObject({ status: 429 })
  expect(await aside()).toMatchObject({ text: 'In short.', usage: { inputTokens: 9 }, finish: 'stop' })
  expect(await aside()).toMatchObject({ text: 'A conversation of 0 messages.' })
  expect(await model.generate(asking(0), { signal: never })).toMatchObject({ text: 'half a', finish: 'length' })
  const wrong = { replies: [{ text: 'x', finish: 'stopped' }] } as unknown as Script
  expect(() => scriptedModel(wrong)).toThrow('replies[0].finish must be "length" or "refusal"')
})

test('a thread that asks beyond the script is told how many replies there are', async () => {
  const beyond = (replies: Script['replies'], asked: number) =>
    scriptedModel({ replies }).generate(asking(asked), { signal: never })
  await expect(beyond([{ text: 'one' }, { text: 'two' }], 2)).rejects.toMatchObject({
    code: 'model/script',
    message: 'the script has 2 replies, and this thread asks for reply 3',
    remedy: expect.stringContaining('add replies'),
  })
  const model = scriptedModel({ replies: [{ text: 'one' }, { error: { status: 500 } }] })
  await expect(model.generate(asking(1), { signal: never })).rejects.toMatchObject({ status: 500 })
  await expect(model.generate(asking(1), { signal: never })).rejects.toThrow('the script has 1 reply, and')
})

test('a delay is waited out and ends with the signal', async () => {
  const clock = new FakeClock()
  const model = scriptedModel({ replies: [{ text: 'late', delayMs: 5_000 }] }, { clock })
  const heard: string[] = []
  const patient = model.generate(asking(0), { signal: never, onText: (delta) => heard.push(delta) })
  clock.advance(4_999)
  await Promise.resolve()
  expect(heard).toEqual([])
  clock.advance(1)
  expect(await patient).toMatchObject({ text: 'late', finish: 'stop' })
  expect(heard).toEqual(['late'])
  const cancel = new AbortController()
  const cancelled = model.generate(asking(0), { signal: cancel.signal })
  cancel.abort(new Error('stop'))
  await expect(cancelled).rejects.toThrow('stop')
})

describe('a script that is wrong', () => {
  test.each<[unknown, string]>([
    [[], 'the script must be an object'],
    [{}, 'replies must be a list'],
    [{ replies: {} }, 'replies must be a list'],
    [{ replies: [], reply: [] }, 'the script has "reply"; known are replies'],
    [{ replies: ['hello'] }, 'replies[0] must be an object'],
    [{ replies: [{ text: 'a' }, {}] }, 'replies[1] must be a reply (text, toolCalls) or an error'],
    [{ replies: [{ text: 7 }] }, 'replies[0].text must be a text'],
    [{ replies: [{ text: 'a', toolcalls: [] }] }, 'replies[0] has "toolcalls"; known are text, toolCalls, error'],
    [{ replies: [{ toolCalls: {} }] }, 'replies[0].toolCalls must be a list'],
    [{ replies: [{ toolCalls: [{ tool: 'a' }, { input: 1 }] }] }, 'replies[0].toolCalls[1].tool must be the name'],
    [{ replies: [{ text: 'a', delayMs: -1 }] }, 'replies[0].delayMs must be a whole number'],
    [{ replies: [{ text: 'a', usage: { inputTokens: 'x' } }] }, 'replies[0].usage.inputTokens must be a whole number'],
    [{ replies: [{ error: 429 }] }, 'replies[0].error must be an object'],
    [{ replies: [{ error: { status: 200 } }] }, 'replies[0].error.status must be an HTTP status from 400 to 599'],
    [{ replies: [{ error: { status: 429, retryAfter: {} } }] }, 'replies[0].error.retryAfter must be what'],
    [{ replies: [{ error: { status: 429 }, text: 'a' }] }, 'replies[0] must be either a reply or an error'],
  ])('%j: %s', (value, message) => {
    expect(() => scriptedModel(value as Script)).toThrow(message)
  })

  test('in a file is named with the file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-script-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const path = join(folder, 'clerk.json')
    expect(() => scriptedModel(path)).toThrow(`${path} cannot be read as a script: ENOENT`)
    writeFileSync(path, '{ "replies": [ }')
    expect(() => scriptedModel(path)).toThrow(/clerk.json cannot be read as a script: .*JSON/)
    writeFileSync(path, '{ "replies": [ 1 ] }')
    expect(() => scriptedModel(path)).toThrow(`${path}: replies[0] must be an object`)
    writeFileSync(path, '{ "replies": [ { "text": "hello" } ] }')
    expect(scriptedModel(path)).toMatchObject({ id: `scripted:${path}`, quota: `scripted:${path}` })
  })
})

describe('a script that repeats', () => {
  const again: Script = {
    repeat: true,
    replies: [
      { text: 'I note {{message}}.', toolCalls: [{ tool: 'note', input: { entry: ['{{message}}'], times: 1 } }] },
      { text: 'Noted.' },
    ],
  }
  const reply = { role: 'assistant', text: '', toolCalls: [] } as const

  test('starts over with each message, wherever the thread was when it came', async () => {
    const model = scriptedModel(again)
    const ask = async (replies: number, ...messages: ModelRequest['messages']) =>
      (await model.generate(asking(replies, { messages }), { signal: never })).text
    expect(await ask(0, ...said('a'))).toBe('I note a.')
    expect(await ask(1, ...said('a'), reply)).toBe('Noted.')
    expect(await ask(2, ...said('a'), reply, reply, ...said('b'))).toBe('I note b.')
    expect(await ask(1, ...said('a'), reply, ...said('c'))).toBe('I note c.')
  })

  test('puts what was said into texts and inputs, as it is', async () => {
    const words = '$& {{message}}'
    const answer = await scriptedModel(again).generate(asking(0, { messages: said(words) }), { signal: never })
    expect(answer.text).toBe(`I note ${words}.`)
    expect(answer.toolCalls[0]?.input).toEqual({ entry: [words], times: 1 })
  })

  test('fails when one message asks for more than it has', async () => {
    const asked = asking(2, { messages: [...said('a'), reply, reply] })
    await expect(scriptedModel(again).generate(asked, { signal: never })).rejects.toThrow('asks for reply 3')
  })
})

test('a reply with streamMs comes word by word, and a stop ends it in the middle', async () => {
  const heard: string[] = []
  const stop = new AbortController()
  const onText = (delta: string) => {
    heard.push(delta)
    if (heard.length === 3) stop.abort()
  }
  const model = scriptedModel({ replies: [{ text: 'one two three four', streamMs: 4 }] })
  const whole = await model.generate(asking(0), { signal: never, onText: (delta) => heard.push(delta) })
  expect(heard.splice(0)).toEqual(['one ', 'two ', 'three ', 'four'])
  expect(whole.text).toBe('one two three four')
  await expect(model.generate(asking(0), { signal: stop.signal, onText })).rejects.toThrow('aborted')
  expect(heard).toEqual(['one ', 'two ', 'three '])
})
