import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import type { ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { defineTool } from '../../src/index.ts'
import { listRuns } from '../../src/runs/run.ts'
import { conversationOf } from '../../src/threads/conversation.ts'
import { acknowledgeDelivery, leaseMessages } from '../../src/threads/delivery.ts'
import { engines } from '../support/engines.ts'
import { clerk, open } from './support.ts'

const THREAD = 'conversation' as ThreadId

/** A tool that is at work until it is let go, or stopped. */
function slowTool() {
  const [began, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const tool = defineTool({
    name: 'slow',
    description: 'Takes its time',
    effect: 'write',
    input: z.object({}),
    run: async (_input, signal) => {
      began.resolve()
      signal.addEventListener('abort', () => released.reject(signal.reason as Error))
      await released.promise
      return 'done'
    },
  })
  return { tool, began: began.promise, letGo: () => released.resolve() }
}

describe.each(engines)('questions on $name', (engine) => {
  test('one that is taken back is never answered, and the answer to another goes on', async () => {
    const database = await engine.database()
    const { tool, began, letGo } = slowTool()
    const replies = [{ toolCalls: [{ tool: 'slow', input: {} }] }, { text: 'answer one' }, { text: 'answer three' }]
    const { runtime } = await open(clerk(replies, [tool]), { store: database.url })
    await runtime.start()
    const question = { agent: 'clerk', threadId: THREAD }
    const first = runtime.ask({ ...question, text: 'one' }).text()
    await began
    const stop = new AbortController()
    const second = runtime.ask({ ...question, text: 'two', signal: stop.signal })
    await second.sent
    stop.abort(new Error('not needed any more'))
    await expect(second.run()).rejects.toMatchObject({ code: 'messages/not-answered' })
    letGo()
    expect(await first).toBe('answer one')
    // Whatever might have been made of the second one would come before this.
    expect(await runtime.ask({ ...question, text: 'three' }).text()).toBe('answer three')
    const store = await database.open()
    const asked = (await store.read(conversationOf, THREAD, 1)).filter(({ kind }) => kind === 'user')
    expect(asked.map(({ body }) => body.text)).toEqual(['one', 'three'])
    expect(await store.read(listRuns, { threadId: THREAD, limit: 10 })).toHaveLength(2)
  })

  test('one that is longer than its row may be is answered', async () => {
    const { url: store } = await engine.database()
    const { runtime } = await open(clerk([{ text: 'ok' }]), { store })
    await runtime.start()
    expect(await runtime.ask({ agent: 'clerk', text: 'x'.repeat(40_000) }).text()).toBe('ok')
  })

  test('who asks hears that somebody else took it', async () => {
    const database = await engine.database()
    const { runtime } = await open(clerk([{ text: 'never' }]), { store: database.url })
    const answer = runtime.ask({ agent: 'clerk', threadId: THREAD, text: 'hello' })
    await answer.sent
    const store = await database.open()
    const by = { kind: 'hand' } as const
    const drained = { id: 'drained', threadId: THREAD, by, limit: 9, bytes: LIMITS.deliveryBytes }
    expect((await store.apply(leaseMessages, drained)).messages).toHaveLength(1)
    await store.apply(acknowledgeDelivery, drained.id)
    await runtime.start()
    await expect(answer.run()).rejects.toMatchObject({ code: 'messages/not-answered' })
  })
})
