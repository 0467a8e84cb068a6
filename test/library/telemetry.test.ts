import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { context, metrics, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import type { ReadableSpan } from '@opentelemetry/sdk-trace'
import { afterAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'

import { createRuntime, defineAgent, defineFunction, defineTool } from '../../src/index.ts'
import type { Runtime } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import type { Script } from '../../src/testing/index.ts'
import { temporaryFolder } from '../support/engines.ts'
import { startProcess } from '../support/holdfast.ts'

type Options = Parameters<typeof createRuntime>[0]

const exporter = new InMemorySpanExporter()
const figures = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
const meters = new MeterProvider({
  readers: [new PeriodicExportingMetricReader({ exporter: figures, exportIntervalMillis: 3_600_000 })],
})
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }))
metrics.setGlobalMeterProvider(meters)

beforeEach(() => exporter.reset())
// The next file in this worker is not traced.
afterAll(() => {
  for (const each of [context, trace, metrics]) each.disable()
})

const SECRET = 'sk-ant-api03-AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHHIIIIJJJJKKKKLLLLMMMMNNNN-1234567890AA'

const write = (name: string, run: (input: { what: string }) => unknown) =>
  defineTool({
    name,
    description: `Does ${name}`,
    effect: 'write',
    input: z.object({ what: z.string() }),
    run: (input, signal) => (signal.throwIfAborted(), run(input)),
  })

const note = write('note', ({ what }) => {
  // What a tool traces itself belongs below its own action.
  trace.getTracer('mine').startSpan('inside').end()
  return { noted: what }
})
const lose = write('lose', () => Promise.reject(new Error('the connection broke')))

async function open(replies: Script['replies'], more: Partial<Options> = {}): Promise<Runtime> {
  const clerk = defineAgent({ name: 'clerk', model: scriptedModel({ replies }), tools: [note, lose], doubt: 'tell' })
  const given = { agents: [clerk], policy: [{ decision: 'allow' }], telemetry: true, ...more }
  const runtime = await createRuntime({ home: join(temporaryFolder(), 'home'), ...given } as Options)
  onTestFinished(() => runtime.close())
  await runtime.start()
  return runtime
}

const calls = (...made: readonly (readonly [tool: string, what: string])[]) => ({
  toolCalls: made.map(([tool, what]) => ({ tool, input: { what } })),
})

const spans = (name: string): ReadableSpan[] => exporter.getFinishedSpans().filter((span) => span.name === name)
const parentOf = (span: ReadableSpan | undefined) => span?.parentSpanContext?.spanId
const idOf = (span: ReadableSpan | undefined) => span?.spanContext().spanId

async function figure(name: string): Promise<readonly unknown[]> {
  await meters.forceFlush()
  const all =
    figures
      .getMetrics()
      .at(-1)
      ?.scopeMetrics.flatMap((scope) => scope.metrics) ?? []
  return all.find((metric) => metric.descriptor.name === name)?.dataPoints ?? []
}

test('a turn is a span for its attempt, and below it one for each model call and each action with what became of it', async () => {
  const usage = { inputTokens: 120, outputTokens: 30, costMicrousd: 4_000 }
  const made = calls(['note', 'a'], ['note', 'a'], ['lose', 'b'], ['note', 'c'])
  const policy = [{ tool: 'note', decision: 'deny', where: [{ argument: 'what', equals: 'c' }] }, { decision: 'allow' }]
  const runtime = await open([{ ...made, usage }, { text: 'done' }], { policy: policy as Options['policy'] & {} })
  await runtime.ask({ agent: 'clerk', text: 'do it' }).text()
  await runtime.close()

  const [attempt] = spans('invoke_agent clerk')
  expect(attempt?.attributes).toMatchObject({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'clerk',
    'gen_ai.usage.input_tokens': 120,
    'holdfast.run.state': 'succeeded',
    'holdfast.attempt.number': 1,
  })
  const [chat] = spans('chat scripted')
  expect(chat?.attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': 'scripted',
    'gen_ai.usage.input_tokens': 120,
    'gen_ai.usage.output_tokens': 30,
    'gen_ai.response.finish_reasons': ['tool_calls'],
    'holdfast.cost_usd': 0.004,
  })
  const actions = [...spans('execute_tool note'), ...spans('execute_tool lose')]
  const outcomes = actions.map(({ attributes }) => String(attributes['holdfast.action.outcome']))
  expect(outcomes.toSorted()).toEqual(['denied', 'in_doubt', 'performed', 'recorded'])
  for (const span of [chat, ...actions]) expect(parentOf(span)).toBe(idOf(attempt))
  expect(spans('inside').map(parentOf)).toEqual([
    idOf(actions.find((span) => span.attributes['holdfast.action.outcome'] === 'performed')),
  ])
})

test('what was said and done is told only to who asked for it, and then without secrets', async () => {
  const replies = [calls(['note', `the key is ${SECRET}`]), { text: 'kept' }]
  const runtime = await open(replies)
  await runtime.ask({ agent: 'clerk', text: `remember ${SECRET}` }).text()
  const silent = JSON.stringify(
    exporter.getFinishedSpans().map(({ attributes, events, status }) => [attributes, events, status]),
  )
  expect(silent).not.toMatch(/remember|the key is|kept/)

  exporter.reset()
  const open2 = await open(replies, { telemetry: { content: true } })
  await open2.ask({ agent: 'clerk', text: `remember ${SECRET}` }).text()
  const told = JSON.stringify(exporter.getFinishedSpans().map(({ attributes }) => attributes))
  expect(told).toMatch(/remember/)
  expect(told).toMatch(/the key is/)
  expect(told).not.toContain(SECRET)
  expect(spans('chat scripted')[0]?.attributes['gen_ai.input.messages']).toContain('"role":"user"')
})

test('an attempt that goes on after a wait refers to the one before it, whose trace the log names', async () => {
  const runtime = await open([calls(['note', 'a']), { text: 'done' }], { policy: [{ decision: 'ask' }] })
  const answer = runtime.ask({ agent: 'clerk', text: 'do it' })
  await expect.poll(async () => (await runtime.approvals.list()).length, { timeout: 40_000 }).toBe(1)
  expect(await figure('holdfast.approvals.waiting')).toMatchObject([{ value: 1 }])
  const [waiting] = await runtime.approvals.list()
  await runtime.approvals.approve(waiting!)
  await answer.text()
  await runtime.close()

  const [before, after] = spans('invoke_agent clerk')
  expect(before?.attributes['holdfast.run.state']).toBe('parked')
  expect(before?.events.map(({ name }) => name)).toContain('approval.waiting')
  expect(after?.links.map((link) => link.context.spanId)).toEqual([idOf(before)])
  expect(spans('execute_tool note').map(parentOf)).toEqual([idOf(after)])
})

test('a function is a span, with one for each of its steps', async () => {
  const add = defineFunction('add', async (run) => (await run.step('one', () => 1)) + (await run.step('two', () => 2)))
  const runtime = await open([], { agents: [add] })
  expect(await (await runtime.call({ function: 'add' })).result()).toBe(3)
  await runtime.close()
  const [whole] = spans('invoke_workflow add')
  expect([...spans('execute_tool one'), ...spans('execute_tool two')].map(parentOf)).toEqual([idOf(whole), idOf(whole)])
})

test('the turn of a command-line agent is a span, with what its client says that it cost', async () => {
  const folder = temporaryFolder()
  const program = fileURLToPath(new URL('../clients/fake-client.mjs', import.meta.url))
  const coder = { client: 'claude', program, env: ['FAKE_CLIENT'] }
  const config = join(folder, 'holdfast.config.json')
  writeFileSync(config, JSON.stringify({ agents: { coder }, telemetry: true }))
  vi.stubEnv('FAKE_CLIENT', folder)
  onTestFinished(() => void vi.unstubAllEnvs())
  const runtime = await createRuntime({ home: join(folder, 'home'), config })
  onTestFinished(() => runtime.close())
  await runtime.start()
  await runtime.ask({ agent: 'coder', text: 'hello' }).text()
  await runtime.close()
  const [turn] = spans('invoke_agent coder')
  expect(turn?.attributes).toMatchObject({ 'gen_ai.usage.input_tokens': 16, 'holdfast.cost_usd': 0.25 })
  const told = expect.objectContaining({
    attributes: expect.objectContaining({ 'gen_ai.provider.name': 'anthropic', 'gen_ai.token.type': 'input' }),
    value: expect.objectContaining({ sum: 16 }),
  })
  expect(await figure('gen_ai.client.token.usage')).toContainEqual(told)
})

test('tokens, waits, ends and what needs a person are figures', async () => {
  const runtime = await open([{ text: 'hello', usage: { inputTokens: 7, outputTokens: 2, costMicrousd: 1 } }])
  await runtime.ask({ agent: 'clerk', text: 'hello' }).text()
  for (const name of [
    'gen_ai.client.token.usage',
    'gen_ai.client.operation.duration',
    'holdfast.run.duration',
    'holdfast.run.queue_wait',
  ])
    expect(await figure(name), name).not.toEqual([])
  expect(await figure('holdfast.runs')).toEqual(
    expect.arrayContaining([expect.objectContaining({ attributes: { 'holdfast.run.state': 'succeeded' }, value: 1 })]),
  )
  expect(await figure('holdfast.actions.in_doubt')).toMatchObject([{ value: 0 }])
  expect(await figure('holdfast.inbox.pending')).toMatchObject([{ value: 0 }])
  await runtime.schedules.add({ name: 'soon', in: '1ms', agent: 'clerk', text: 'again' })
  await expect.poll(() => figure('holdfast.schedule.lateness'), { timeout: 40_000 }).not.toEqual([])
})

test('the package is loaded where telemetry is wanted, and nowhere else', async () => {
  const program = `
    import { registerHooks } from 'node:module'
    const seen = []
    registerHooks({ resolve: (name, about, next) => (name.includes('opentelemetry') && seen.push(name), next(name, about)) })
    const { createRuntime } = await import('./src/index.ts')
    const runtime = await createRuntime({ home: process.argv[1], agents: [] })
    await runtime.start(); await runtime.close()
    console.log(seen.length > 0)`
  const loaded = async (env: Record<string, string>) => {
    const args = ['--input-type=module', '-e', program, join(temporaryFolder(), 'home')]
    return (await startProcess(process.execPath, args, env).ended).stdout.trim()
  }
  const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }
  const [without, wanted] = await Promise.all([loaded({}), loaded(collector)])
  expect({ without, wanted }).toEqual({ without: 'false', wanted: 'true' })
})
