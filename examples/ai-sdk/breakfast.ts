// An agent of the AI SDK that orders breakfast, in a program that is killed four times: while the model is asked, between an effect
// and its record, in the middle of the model's words, and while a person is asked. Started again it goes on where it was.
// It plays both parts and checks itself: `npm run example:ai-sdk` ends with 0 only if each thing was ordered once.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { ToolLoopAgent, simulateReadableStream, tool } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { createRuntime, defineFunction } from 'holdfast'
import type { Runtime } from 'holdfast'
import { durable, idempotencyKey } from 'holdfast/ai-sdk'
import { z } from 'zod'

const MOMENTS = ['asked 1', 'ordered bread', 'words 2', 'waiting'] as const
const USAGE = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
}
const REPLIES = [
  { says: '', orders: ['milk', 'bread'] },
  { says: 'And some', orders: ['caviar'] },
  { says: 'Breakfast is on its way.', orders: [] },
]

const [folder] = process.argv.slice(2)
if (folder === undefined) watch()
else await shop(folder)

/** The program. What is particular about it is `durable({ … })`, and that it runs in a function that can be called again. */
async function shop(home: string): Promise<void> {
  const ledger = (...args: readonly string[]) => {
    const [verb = '', ...rest] = args
    const program = join(import.meta.dirname, 'ledger.mjs')
    return spawnSync(process.execPath, [program, verb, join(home, 'orders.txt'), ...rest], { encoding: 'utf8' }).stdout
  }
  const order = tool({
    description: 'Orders one thing',
    inputSchema: z.object({ what: z.string() }),
    execute: ({ what }) => {
      ledger('append', idempotencyKey(), what)
      dieAt(`ordered ${what}`, home)
      return { ordered: what }
    },
  })
  const breakfast = defineFunction<{ wish: string }>('breakfast', async (run) => {
    const agent = new ToolLoopAgent({
      ...durable({
        model: model(home),
        tools: { order },
        // After a crash the shop is asked whether the order has come.
        actions: {
          order: {
            probe: (_input, { key }) =>
              ledger('find', key) === 'found' ? { outcome: 'done' } : { outcome: 'not_done' },
          },
        },
        toolApproval: { order: ({ what }) => (what === 'caviar' ? 'user-approval' : 'approved') },
      }),
      instructions: 'You order breakfast.',
    })
    const result = await agent.stream({ prompt: run.input.wish })
    return result.text
  })
  const runtime = await createRuntime({ home, agents: [breakfast] })
  await runtime.start()
  const call = await runtime.call({ function: 'breakfast', input: { wish: 'Surprise me.' }, key: 'breakfast' })
  const over = new AbortController()
  const person = decide(runtime, home, over.signal)
  console.log(await call.result())
  over.abort()
  await person
  await runtime.close()
}

/** A person, who has to be asked about caviar; they take their time, and the program may be gone meanwhile. */
async function decide(runtime: Runtime, home: string, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    for (const request of await runtime.approvals.list()) {
      dieAt('waiting', home)
      await runtime.approvals.approve(request, { by: 'Ann' })
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Stands for a provider. It writes down how often it is asked for what: answers cost money. */
function model(home: string) {
  return new MockLanguageModelV4({
    doStream: async ({ prompt }) => {
      const turn = prompt.filter(({ role }) => role === 'assistant').length
      appendFileSync(join(home, 'asked.txt'), `${turn}\n`)
      dieAt(`asked ${turn}`, home)
      const { says, orders } = REPLIES[turn]!
      const calls = orders.map((what) => ({
        type: 'tool-call' as const,
        toolCallId: what,
        toolName: 'order',
        input: JSON.stringify({ what }),
      }))
      const words = says.split(/(?<= )/).map((delta) => ({ type: 'text-delta' as const, id: 'words', delta }))
      const finishReason = { unified: calls.length === 0 ? ('stop' as const) : ('tool-calls' as const), raw: undefined }
      const parts = simulateReadableStream({
        chunkDelayInMs: 1,
        chunks: [
          { type: 'text-start' as const, id: 'words' },
          ...words,
          { type: 'text-end' as const, id: 'words' },
          ...calls,
          { type: 'finish' as const, usage: USAGE, finishReason },
        ],
      })
      const spoken = new TransformStream({
        transform(part: { type: string }, controller) {
          controller.enqueue(part)
          if (part.type === 'text-delta') dieAt(`words ${turn}`, home)
        },
      })
      return { stream: parts.pipeThrough(spoken) }
    },
  })
}

/** Dies at a moment of the list, once. */
function dieAt(moment: string, home: string): void {
  const mark = join(home, `died ${moment}`)
  if (!(MOMENTS as readonly string[]).includes(moment) || existsSync(mark)) return
  writeFileSync(mark, '')
  process.kill(process.pid, 'SIGKILL')
}

/** Whoever starts it, kills or no kills. */
function watch(): void {
  const home = mkdtempSync(join(tmpdir(), 'holdfast-breakfast-'))
  const start = () =>
    spawnSync(process.execPath, [...process.execArgv, import.meta.filename, home], { encoding: 'utf8' })
  for (const _ of MOMENTS) {
    const { signal, stderr } = start()
    assert.equal(signal, 'SIGKILL', `it should have been killed: ${stderr}`)
  }
  const last = start()
  assert.equal(last.status, 0, last.stderr)
  process.stdout.write(last.stdout)
  const lines = (file: string) => readFileSync(join(home, file), 'utf8').split('\n').filter(Boolean)
  const ordered = lines('orders.txt').map((line) => line.split(' ')[1])
  assert.deepEqual(ordered, ['milk', 'bread', 'caviar'], 'each was ordered once')
  // An answer that came whole is not asked for again; the two that were cut off are.
  assert.deepEqual(lines('asked.txt'), ['0', '1', '1', '2', '2'])
  rmSync(home, { recursive: true })
  console.log(`killed ${MOMENTS.length} times, each was ordered once`)
}
