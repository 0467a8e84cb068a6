// An agent that places two orders, in a program that is killed in the middle of the second, between the effect and its
// record. Started again it asks the same question; the tool's probe finds the order, and nothing is ordered twice.
// It plays both parts and checks itself: `npm run example` ends with 0 only if all of that held.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createRuntime, defineAgent, defineTool } from 'holdfast'
import { scriptedModel } from 'holdfast/testing'
import { z } from 'zod'

const [folder] = process.argv.slice(2)
if (folder === undefined) watch()
else await shop(folder)

/** The program. */
async function shop(home: string): Promise<void> {
  const book = join(home, 'orders.txt')
  const orders = () => (existsSync(book) ? readFileSync(book, 'utf8').split('\n').filter(Boolean) : [])
  const order = defineTool({
    name: 'order',
    description: 'Orders one thing',
    effect: 'write',
    input: z.object({ what: z.string() }),
    run: ({ what }, signal, { key }) => {
      signal.throwIfAborted()
      writeFileSync(book, `${key} ${what}\n`, { flag: 'a' })
      const dies = what === 'bread' && !existsSync(join(home, 'died'))
      if (dies) writeFileSync(join(home, 'died'), '')
      if (dies) process.kill(process.pid, 'SIGKILL')
      return { what }
    },
    probe: ({ what }, _signal, { key }) =>
      orders().some((line) => line.startsWith(key)) ? { outcome: 'done', result: { what } } : { outcome: 'not_done' },
  })
  const toolCalls = ['milk', 'bread'].map((what) => ({ tool: 'order', input: { what } }))
  const model = scriptedModel({ replies: [{ toolCalls }, { text: 'Milk and bread are on their way.' }] })
  const buyer = defineAgent({ name: 'buyer', model, tools: [order] })
  // Without a rule each order would wait for a person's yes.
  const runtime = await createRuntime({ home, agents: [buyer], policy: [{ tool: 'order', decision: 'allow' }] })
  await runtime.start()
  const answer = runtime.ask({ agent: 'buyer', text: 'Breakfast, please.', key: 'breakfast' })
  for await (const event of answer) if (event.type === 'action') console.log(event.tool, event.input, event.state)
  console.log(await answer.text())
  await runtime.close()
}

/** Whoever starts it, kills or no kills. */
function watch(): void {
  const home = mkdtempSync(join(tmpdir(), 'holdfast-orders-'))
  const start = () =>
    spawnSync(process.execPath, [...process.execArgv, import.meta.filename, home], { encoding: 'utf8' })
  const first = start()
  assert.equal(first.signal, 'SIGKILL', `it should have been killed: ${first.stderr}`)
  console.log('killed in the middle of ordering bread; started again:')
  const second = start()
  process.stdout.write(second.stdout)
  assert.equal(second.status, 0, second.stderr)
  assert.match(second.stdout, /on their way/)
  const ordered = readFileSync(join(home, 'orders.txt'), 'utf8').match(/milk|bread/g)
  assert.deepEqual(ordered, ['milk', 'bread'], 'each was ordered once')
  rmSync(home, { recursive: true })
  console.log('each was ordered once')
}
