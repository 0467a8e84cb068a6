import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import type { ReadableSpan } from '@opentelemetry/sdk-trace'
import { ToolLoopAgent } from 'ai'
import { afterAll, beforeEach, expect, test } from 'vitest'

import { durable } from '../../src/ai-sdk/index.ts'
import { defineFunction } from '../../src/index.ts'
import type { RuntimeOptions } from '../../src/index.ts'
import { until } from '../support/holdfast.ts'
import { mock } from './mock.ts'
import { noting, open } from './support.ts'

const exporter = new InMemorySpanExporter()
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }))

beforeEach(() => exporter.reset())
// The next file in this worker is not traced.
afterAll(() => {
  for (const each of [context, trace]) each.disable()
})

const spans = (name: string): ReadableSpan[] => exporter.getFinishedSpans().filter((span) => span.name === name)
const parentOf = (span: ReadableSpan | undefined) => span?.parentSpanContext?.spanId
const idOf = (span: ReadableSpan | undefined) => span?.spanContext().spanId

/** An agent that notes three things: one is done at once, one is refused by a person, and one that a rule denies. */
async function traced(telemetry: RuntimeOptions['telemetry'] & {}) {
  const calls = ['one', 'two', 'three'].map((entry) => ['note', { entry }] as const)
  const model = mock([{ says: 'Three things.', calls }, 'Well.'])
  // What a tool traces itself belongs below its own action.
  const note = noting([], () => trace.getTracer('mine').startSpan('inside').end())
  const clerk = defineFunction('clerk', async () => {
    const wrapped = durable({
      model,
      tools: { note },
      toolApproval: { note: ({ entry }) => (entry === 'two' ? 'user-approval' : 'approved') },
    })
    return (await new ToolLoopAgent(wrapped).generate({ prompt: 'Note them.' })).text
  })
  const policy = [{ tool: 'note', decision: 'deny', where: [{ argument: 'entry', equals: 'three' }] }] as const
  const { runtime } = await open([clerk], { policy, telemetry })
  const call = await runtime.call({ function: 'clerk', threadId: 'diary' })
  const request = await until('it asks', async () => (await runtime.approvals.list())[0])
  await runtime.approvals.deny(request, { note: 'not that' })
  expect(await call.result()).toBe('Well.')
  await runtime.close()
  return call
}

test('a loop of the AI SDK has the spans of one of ours: each question that was asked, each action with what became of it', async () => {
  const { runId } = await traced(true)
  const attempts = spans('invoke_workflow clerk')
  expect(attempts.map(({ attributes }) => attributes['holdfast.attempt.number'])).toEqual([1, 2])
  // A function that is left where it is, because a person has to be waited for, is over.
  expect(attempts[0]?.attributes['holdfast.run.state']).toBe('parked')
  expect(attempts[0]?.events.map(({ name }) => name)).toContain('approval.waiting')

  // What is recorded is not asked for, and no span says so.
  const chats = spans('chat mock-model-id')
  expect(chats.map(parentOf)).toEqual(attempts.map(idOf))
  expect(chats[0]?.attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'mock-provider',
    'gen_ai.agent.name': 'clerk',
    'gen_ai.conversation.id': 'diary',
    'gen_ai.usage.input_tokens': 10,
    'gen_ai.usage.output_tokens': 5,
    'gen_ai.response.finish_reasons': ['tool_calls'],
    'holdfast.run.id': runId,
  })

  const actions = spans('execute_tool note')
  const outcomes = actions.map(({ attributes }) => String(attributes['holdfast.action.outcome']))
  expect(outcomes.toSorted()).toEqual(['denied', 'denied', 'performed'])
  for (const span of actions) expect(attempts.map(idOf)).toContain(parentOf(span))
  expect(spans('inside').map(parentOf)).toEqual([idOf(actions[outcomes.indexOf('performed')])])
  expect(JSON.stringify(exporter.getFinishedSpans().map(({ attributes }) => attributes))).not.toMatch(
    /Note them|Three things|three/,
  )
})

test('what it was asked, what it said and what it did with what is told to who asked for that', async () => {
  await traced({ content: true })
  const [first, second] = spans('chat mock-model-id').map(({ attributes }) => attributes)
  expect(first?.['gen_ai.input.messages']).toContain('Note them.')
  expect(first?.['gen_ai.output.messages']).toContain('Three things.')
  expect(second?.['gen_ai.input.messages']).toMatch(/tool_call_response.*not that/)
  expect(spans('execute_tool note').map(({ attributes }) => attributes['gen_ai.tool.call.arguments'])).toContain(
    '{"entry":"one"}',
  )
})
