/* Checked by the compiler: what must compile does, and each line below an expected error must not. */

import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { z } from 'zod'

import { createRuntime, defineAgent, defineTool } from '../../src/index.ts'
import type { LanguageModel } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const common = { name: 'note', description: 'Append one entry', effect: 'write' } as const
const input = z.object({ entry: z.string(), times: z.number().default(1) })

/** The input of `run` is what the schema makes of it; a default is always there. */
export const inferred = defineTool({
  ...common,
  input,
  identity: ['entry'],
  run: async (given, signal, call) => {
    const entry: string = given.entry
    const times: number = given.times
    const key: string = call.key
    signal.throwIfAborted()
    return { entry, times, key }
  },
  probe: async ({ entry }, signal) => ({ outcome: 'done', result: [entry, signal.aborted] }),
})

export const wronglyUsed = defineTool({
  ...common,
  input,
  run: async (given, signal) => {
    // @ts-expect-error: a text is no number
    const wrong: number = given.entry
    // @ts-expect-error: there is no such argument
    return [wrong, given.entrie, signal.aborted]
  },
})

export const deaf = defineTool({
  ...common,
  input,
  // @ts-expect-error: without the signal nobody could stop it
  run: async (given) => given.entry,
})

export const deafer = defineTool({
  ...common,
  input,
  // @ts-expect-error: without the signal nobody could stop it
  run: () => 1,
})

export const byJsonSchema = defineTool({
  ...common,
  inputSchema: { type: 'object', properties: { entry: { type: 'string' } } },
  run: async (given, signal) => {
    const entry: unknown = given['entry']
    return signal.aborted ? undefined : entry
  },
})

// @ts-expect-error: what it takes must be described somehow
export const undescribed = defineTool({ ...common, run: async (given, signal) => [given, signal] })

export const misnamed = defineTool({
  ...common,
  input,
  // @ts-expect-error: an identity names arguments
  identity: ['entrie'],
  run: async (given, signal) => [given, signal],
})

export const undecided = defineTool({
  ...common,
  // @ts-expect-error: it reads or it writes
  effect: 'both',
  input,
  run: async (given, signal) => [given, signal],
})

export const vague = defineTool({
  ...common,
  input,
  run: async (given, signal) => [given, signal],
  // @ts-expect-error: a probe has three answers
  probe: () => ({ outcome: 'perhaps' }),
})

export const byName = defineAgent({ name: 'a', model: 'anthropic/claude-sonnet-5', tools: [inferred, 'shell'] })
export const scripted = defineAgent({ name: 'a', model: scriptedModel({ replies: [{ text: 'Hm.' }] }) })
export const anthropic = defineAgent({ name: 'a', model: createAnthropic({ apiKey: 'x' })('claude-sonnet-5') })
export const compatible = defineAgent({
  name: 'a',
  model: createOpenAICompatible({ name: 'own', baseURL: 'http://127.0.0.1/v1' })('m'),
})
// @ts-expect-error: a number is no model
export const modelless = defineAgent({ name: 'a', model: 5 })
// @ts-expect-error: a function is no tool
export const toolless = defineAgent({ name: 'a', model: 'x/y', tools: [() => 1] })

export async function addressed(own: LanguageModel): Promise<string> {
  const runtime = await createRuntime({ home: '.', agents: [defineAgent({ name: 'a', model: own })] })
  // @ts-expect-error: to whom?
  await runtime.send({ text: 'Hello' })
  // @ts-expect-error: agents of the program, or those of a file
  await createRuntime({ home: '.', agents: [], config: 'holdfast.config.ts' })
  for await (const event of runtime.ask({ agent: 'a', text: 'Hello' })) {
    if (event.type === 'text') return event.delta
    if (event.type === 'finished') return event.run.state
  }
  return runtime.ask({ threadId: 'diary', text: 'Hello' }).text()
}
