import type { StandardSchemaV1 } from '@standard-schema/spec'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'

import type { ActionId, RunId, ThreadId } from '../base/ids.ts'
import type { ToolContext, ToolOutcome } from '../loop/ports.ts'
import { processIdentity } from '../processes/identity.ts'
import { temporaryFolder } from '../../test/support/engines.ts'
import { FakeClock } from '../testing/fake-clock.ts'
import { openDefinedTool } from './defined-tool.ts'
import { defineTool, notDone } from './tool.ts'
import type { DefinedTool } from './tool.ts'

const SHAPE = z.object({ entry: z.string(), times: z.number().int().default(1) })

const base = { name: 'note', description: 'Append one entry' } as const
const write = { ...base, effect: 'write', input: SHAPE } as const
const read = { ...base, effect: 'read', input: SHAPE } as const
const MILK = { entry: 'milk' }

let tries = 0

class Try {
  readonly clock = new FakeClock()
  readonly stop = new AbortController()
  readonly warnings: string[] = []
  readonly context: ToolContext = {
    signal: this.stop.signal,
    clock: this.clock,
    key: `act_${(tries += 1)}` as ActionId,
    threadId: 'thr_1' as ThreadId,
    runId: 'run_1' as RunId,
    folder: join(temporaryFolder(), 'try'),
    mark: 'mark',
    fence: 1,
    deadline: this.clock.now() + 10_000,
  }

  open = (tool: DefinedTool) => openDefinedTool(tool, { warn: (message) => this.warnings.push(message) })
  perform = (tool: DefinedTool, input: unknown = MILK) => this.open(tool).perform(input, this.context)
}

const never = () => new Promise<never>(() => {})

/** Its outcome to come, once it is at work. */
async function atWork(
  attempt: Try,
  definition: typeof read | typeof write,
  run: Run,
): Promise<() => Promise<ToolOutcome>> {
  const begun = Promise.withResolvers<void>()
  const working = (input: unknown, signal: AbortSignal) => {
    begun.resolve()
    return run(input, signal)
  }
  const outcome = attempt.perform(defineTool({ ...definition, run: working }))
  await begun.promise
  return () => outcome
}

type Run = (input: unknown, signal: AbortSignal) => unknown

test('a run that does not take the signal cannot be defined', () => {
  // A function of one argument is what the types refuse, and what plain JavaScript could still write.
  const deaf = ((input: unknown) => input) as unknown as (input: unknown, signal: AbortSignal) => unknown
  expect(() => defineTool({ ...write, run: deaf })).toThrow('does not take the signal')
})

test.each([
  [{ name: 'no spaces' }, 'cannot be the name of a tool'],
  [{ name: 'shell' }, 'is the name of a built-in tool'],
  [{ description: ' ' }, 'has no description'],
  [{ effect: 'maybe' as 'read' }, 'must be "read" or "write"'],
  [{ identity: ['entrie' as 'entry'] }, 'names "entrie", which is not an argument'],
  [{ identity: [] }, 'names nothing'],
  [{ timeout: 'soon' }, 'is not a duration'],
  [{ input: z.string() as unknown as typeof SHAPE }, 'must describe an object'],
  [{ input: z.object({ at: z.date() }) as unknown as typeof SHAPE }, 'cannot be described as JSON Schema'],
])('what cannot work is refused where it is written: %o', (mistake, words) => {
  expect(() => defineTool({ ...write, ...mistake, run: (_input, signal) => signal.aborted })).toThrow(words)
})

test('a schema that cannot describe itself needs a JSON Schema beside it, and still does the checking', () => {
  const even: StandardSchemaV1<{ n: number }> = {
    '~standard': {
      version: 1,
      vendor: 'own',
      validate: (value) =>
        (value as { n: number }).n % 2 === 0
          ? { value: value as { n: number } }
          : { issues: [{ message: 'is odd', path: [{ key: 'list' }, 0, 'n'] }] },
    },
  }
  const definition = {
    ...base,
    effect: 'read',
    input: even,
    run: ({ n }: { n: number }, _signal: AbortSignal) => n,
  } as const
  expect(() => defineTool(definition)).toThrow('cannot describe itself as JSON Schema')
  const tool = new Try().open(defineTool({ ...definition, inputSchema: { type: 'object' } }))
  expect(tool.validate({ n: 2 })).toEqual({ input: { n: 2 } })
  expect(tool.validate({ n: 3 })).toEqual({ error: 'list[0].n: is odd' })
})

test('a model is shown the input as JSON Schema, and told by its path what is wrong', () => {
  const tool = new Try().open(defineTool({ ...write, run: (_input, signal) => signal.aborted }))
  expect(tool.inputSchema).toMatchObject({
    type: 'object',
    properties: { entry: { type: 'string' } },
    required: ['entry'],
  })
  expect(tool.inputSchema).not.toHaveProperty('$schema')
  expect(tool.validate({ entry: 5, times: 'x' })).toEqual({
    error:
      'entry: Invalid input: expected string, received number\ntimes: Invalid input: expected number, received string',
  })
  expect(tool.validate('milk')).toMatchObject({ error: expect.stringContaining('the arguments: ') as string })
  expect(tool.validate({ entry: 'x'.repeat(300_000) })).toMatchObject({
    error: expect.stringContaining('too large') as string,
  })
})

test('a check that throws or wants to be waited for is said to be wrong, and ends nothing', () => {
  const validating = (schema: StandardSchemaV1) =>
    new Try()
      .open(
        defineTool({
          ...base,
          effect: 'read',
          input: schema,
          inputSchema: { type: 'object' },
          run: (_i, signal) => signal,
        }),
      )
      .validate(MILK)
  const broken: StandardSchemaV1 = {
    '~standard': {
      version: 1,
      vendor: 'own',
      validate: () => {
        throw new Error('boom')
      },
    },
  }
  expect(validating(broken)).toEqual({ error: 'the arguments could not be checked: boom' })
  const slow = z.looseObject({}).refine(async () => true)
  expect(validating(slow)).toMatchObject({ error: expect.stringContaining('could not be checked') as string })
})

test('what is recorded is what the model sent; the tool gets what its schema makes of it', async () => {
  const seen: unknown[] = []
  const input = z.object({ at: z.string().transform((text) => new Date(text)), n: z.number().default(7) })
  const tool = new Try().open(
    defineTool({
      ...base,
      effect: 'read',
      input,
      inputSchema: { type: 'object' },
      run: (given, _signal) => void seen.push(given),
    }),
  )
  const sent = { at: '2026-01-01T00:00:00Z', more: 'left out' }
  expect(tool.validate(sent)).toEqual({ input: sent })
  expect(await tool.perform(sent, new Try().context)).toEqual({ kind: 'done', result: 'done' })
  expect(seen).toEqual([{ at: new Date('2026-01-01T00:00:00Z'), n: 7 }])
})

test('two calls are the same by what the tool gets, unless that is more than JSON', () => {
  const run = (_input: unknown, signal: AbortSignal) => signal.aborted
  const plain = new Try().open(defineTool({ ...write, run }))
  expect(plain.identity({ entry: 'a' })).toEqual(plain.identity({ entry: 'a', times: 1, junk: 2 }))
  const named = new Try().open(defineTool({ ...write, identity: ['entry'], run }))
  expect(named.identity({ entry: 'a', times: 9 })).toEqual({ entry: 'a' })
  const input = z.object({ tags: z.array(z.string()).transform((tags) => new Set(tags)) })
  const rich = new Try().open(defineTool({ ...base, effect: 'write', input, run }))
  expect(rich.identity({ tags: ['a'] })).not.toEqual(rich.identity({ tags: ['b'] }))
})

test('a read that throws has failed, a write that throws is in doubt, and one that says so did not happen [actions/no-blind-retry]', async () => {
  const throwing = (error: unknown) => (_input: unknown, _signal: AbortSignal) => Promise.reject(error)
  const attempt = new Try()
  expect(await attempt.perform(defineTool({ ...read, run: throwing(new Error('no paper')) }))).toEqual({
    kind: 'failed',
    error: 'it threw: no paper',
  })
  expect(await attempt.perform(defineTool({ ...write, run: throwing(new Error('no paper')) }))).toEqual({
    kind: 'in-doubt',
    error: 'it threw: no paper',
    over: true,
  })
  expect(await attempt.perform(defineTool({ ...write, run: throwing(notDone('no paper')) }))).toEqual({
    kind: 'failed',
    error: 'no paper',
  })
  expect(await attempt.perform(defineTool({ ...write, run: throwing(undefined) }))).toMatchObject({ kind: 'in-doubt' })
})

const circle: Record<string, unknown> = {}
circle['self'] = circle

test.each([
  ['nothing', undefined, 'done'],
  ['a number', 5, 5],
  ['a date', new Date(0), '1970-01-01T00:00:00.000Z'],
  ['a function', () => 1, 'done; what it returned cannot be kept: it is not JSON but a function'],
  ['a circle', circle, expect.stringContaining('not JSON: Converting circular structure')],
  ['a BigInt', { n: 1n }, expect.stringContaining('not JSON: Do not know how to serialize a BigInt')],
  ['100 MB of bytes', Buffer.alloc(1e8), expect.stringContaining('too large')],
  ['a large text in a list', ['x'.repeat(1e6)], expect.stringContaining('too large')],
])('whatever a write returns, it is done: %s', async (_name, value, result) => {
  const tool = defineTool({ ...write, run: (_input, _signal) => value })
  expect(await new Try().perform(tool)).toEqual({ kind: 'done', result })
})

test('a read whose result cannot be kept has failed', async () => {
  const tool = defineTool({ ...read, run: (_input, _signal) => 1n })
  expect(await new Try().perform(tool)).toMatchObject({
    kind: 'failed',
    error: expect.stringContaining('BigInt') as string,
  })
})

test('of half a gigabyte of text both ends are kept, and no second copy is made', async () => {
  const text = `${'x'.repeat(2 ** 28)}${'y'.repeat(2 ** 28 - 100)}`
  const before = process.memoryUsage().rss
  const outcome = await new Try().perform(defineTool({ ...write, run: (_input, _signal) => text }))
  const kept = (outcome as { result: { head: string; tail: string; totalCharacters: number } }).result
  expect([kept.head.length, kept.tail.length, kept.totalCharacters]).toEqual([131_072, 131_072, 2 ** 29 - 100])
  expect([kept.head[0], kept.tail.at(-1)]).toEqual(['x', 'y'])
  expect(process.memoryUsage().rss - before).toBeLessThan(2 ** 30)
})

test('its time limit is a signal too, and what stops at it says how long it had', async () => {
  const attempt = new Try()
  const run = (_input: unknown, signal: AbortSignal) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
  const outcome = await atWork(attempt, write, run)
  attempt.clock.advance(10_000)
  expect(await outcome()).toEqual({ kind: 'in-doubt', error: 'timed out after 10s', over: true })
})

test('one that finishes after it was told to stop is done', async () => {
  const attempt = new Try()
  const run = (_input: unknown, signal: AbortSignal) =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve('just in time')))
  const outcome = await atWork(attempt, write, run)
  attempt.stop.abort('cancelled')
  expect(await outcome()).toEqual({ kind: 'done', result: 'just in time' })
})

test('one that was told to stop before it began has not begun', async () => {
  const attempt = new Try()
  attempt.stop.abort('cancelled')
  expect(await attempt.perform(defineTool({ ...write, run: (_input, _signal) => never() }))).toEqual({
    kind: 'failed',
    error: 'cancelled before it was started',
    unbegun: true,
  })
})

test('one that ignores its signal is left behind after a grace: a write in doubt and not over, a read failed', async () => {
  const ignoring = (_input: unknown, _signal: AbortSignal) => never()
  for (const [definition, how] of [
    [write, { kind: 'in-doubt', over: false }],
    [read, { kind: 'failed' }],
  ] as const) {
    const attempt = new Try()
    const outcome = await atWork(attempt, definition, ignoring)
    attempt.stop.abort('cancelled')
    attempt.clock.advance(5_000)
    expect(await outcome()).toEqual({ ...how, error: 'cancelled; it was told to stop and does not' })
    expect(await attempt.open(defineTool({ ...definition, run: ignoring })).goesOn?.(attempt.context.key)).toBe(true)
    expect(attempt.warnings).toEqual([expect.stringContaining('ignores its signal')])
  }
})

test('a probe is not believed about what was left behind, as long as that goes on [actions/no-blind-retry]', async () => {
  const attempt = new Try()
  let end: (result: unknown) => void = () => {}
  const begun = Promise.withResolvers<void>()
  const tool = attempt.open(
    defineTool({
      ...write,
      run: (_input, _signal) => {
        begun.resolve()
        return new Promise((resolve) => (end = resolve))
      },
      probe: () => ({ outcome: 'not_done' }),
    }),
  )
  const outcome = tool.perform(MILK, attempt.context)
  await begun.promise
  attempt.clock.advance(10_000)
  attempt.clock.advance(5_000)
  expect(await outcome).toMatchObject({ kind: 'in-doubt' })
  expect(await tool.probe!(MILK, attempt.context)).toEqual({ kind: 'unknown' })
  end('at last')
  await new Promise((resolve) => setImmediate(resolve))
  expect(await tool.probe!(MILK, attempt.context)).toMatchObject({ kind: 'failed' })
})

test('a probe is believed about another process when that is dead: a paused one could go on [actions/no-blind-retry]', async () => {
  const attempt = new Try()
  const tool = attempt.open(
    defineTool({ ...write, run: (_input, _signal) => 1, probe: () => ({ outcome: 'not_done' }) }),
  )
  const ask = () => tool.probe!(MILK, attempt.context)
  // Nobody left a word: it may be anywhere.
  expect(await ask()).toEqual({ kind: 'unknown' })
  await tool.perform(MILK, attempt.context)
  const other = spawn('sleep', ['60'], { stdio: 'ignore' })
  onTestFinished(() => void other.kill('SIGKILL'))
  const identity = processIdentity(other.pid)
  writeFileSync(join(attempt.context.folder, 'function.json'), JSON.stringify(identity))
  other.kill('SIGSTOP')
  expect(await ask()).toEqual({ kind: 'unknown' })
  other.kill('SIGKILL')
  await once(other, 'exit')
  expect(await ask()).toMatchObject({ kind: 'failed' })
  writeFileSync(join(attempt.context.folder, 'function.json'), JSON.stringify({ ...identity, host: 'elsewhere' }))
  expect(await ask()).toEqual({ kind: 'unknown' })
})

test.each([
  [() => Promise.reject(new Error('offline')), 'unknown'],
  [() => ({ outcome: 'perhaps' }) as unknown as { outcome: 'unknown' }, 'unknown'],
  [() => ({ outcome: 'done' as const, result: 5 }), 'done'],
])('a probe without a clear answer leaves the doubt', async (probe, kind) => {
  const attempt = new Try()
  const tool = attempt.open(defineTool({ ...write, run: (_input, _signal) => 1, probe }))
  expect(await tool.probe!(MILK, attempt.context)).toMatchObject({ kind })
})
