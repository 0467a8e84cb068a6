import { expect, test } from 'vitest'

import { conversationOf } from '../../src/threads/conversation.ts'
import { AgentInstallation } from '../support/agents.ts'
import { until } from '../support/holdfast.ts'

test('an agent asks for a follow-up; it is listed, begun by hand, and comes as a turn with its header', async () => {
  const call = {
    tool: 'schedule_followup',
    input: { delay_seconds: 3_600, prompt: 'Is it green?', reason: 'it was red' },
  }
  const place = new AgentInstallation({
    agents: {
      watch: {
        tools: ['schedule_followup'],
        replies: [{ toolCalls: [call] }, { text: 'I will look.' }, { text: 'It is green.' }],
      },
    },
  })
  await place.daemon()
  const { runId, threadId } = await place.send('watch')
  await place.ended(runId)
  const [listed] = await place.json<{ id: string }[]>(['followup', 'list', threadId])
  await place.json(['schedule', 'run-now', listed!.id])
  const told = await until('it was answered', async () => {
    const entries = await (await place.store()).read(conversationOf, threadId, 1)
    const texts = entries.map(({ body }) => String(body.text))
    return texts.includes('It is green.') ? texts : undefined
  })
  expect(told.at(-2)).toMatch(
    new RegExp(
      `^\\[follow-up ${listed!.id}; asked for at .+; begun by hand at .+; because: it was red\\]\\nIs it green\\?$`,
    ),
  )
})
