import { expect, test } from 'vitest'

import { newMessageId, systemRandomness as random } from '../../src/base/ids.ts'
import { liveSessions } from '../../src/sessions/session.ts'
import { countWakes } from '../../src/sessions/wake.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { hasTmux, injected, makeConductor, openTerminal, timesIn } from './conductor.ts'
import { realClient } from './support.ts'

const CLAUDE = realClient('claude')

test.skipIf(CLAUDE === undefined || !hasTmux())(
  'an idle real Claude Code is woken in the background, and its model reads what came once, twice in a row [M11] [inbox/busy-parent]',
  async () => {
    const conductor = await makeConductor(({ number }) => ({ text: `reply ${number}.` }))
    const { store, model } = conductor
    const terminal = await openTerminal(conductor)
    await terminal.shows('❯')
    await terminal.type('hello')
    await terminal.shows('reply 1.')
    for (const name of ['first', 'second']) {
      const session = await until('it is idle', async () => {
        const [known] = await store.read(liveSessions, 5)
        return known?.state === 'idle' ? known : undefined
      })
      const about = { threadId: session.threadId, kind: 'completion', key: name } as const
      await store.apply(acceptMessage, {
        ...about,
        id: newMessageId(random),
        body: { summary: `the words of ${name}` },
      })
      await until('it has been read', async () => {
        const messages = await store.read(messagesOf, session.threadId)
        return messages.every(({ state }) => state === 'consumed') ? true : undefined
      })
    }
    const texts = injected(model.asked.at(-1)!)
    expect(['first', 'second'].map((name) => timesIn(texts, `the words of ${name}`))).toEqual([1, 1])
    expect(await store.read(countWakes)).toEqual({ wakes: 2, vain: 0 })
    await assertInvariants(store)
  },
)
