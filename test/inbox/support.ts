import { randomBytes } from 'node:crypto'

import { inject } from 'vitest'

import { newMessageId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import type { Store } from '../../src/store/store.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import type { NewMessage } from '../../src/threads/accept.ts'
import { openThread } from '../../src/threads/thread.ts'
import type { viewMessage } from '../../src/threads/view.ts'
import { AgentInstallation } from '../support/agents.ts'
import type { Settings } from '../support/agents.ts'
import { withParameters } from '../support/engines.ts'

export const engines = [{ engine: 'sqlite' }, { engine: 'postgres' }] as const
export type Engine = (typeof engines)[number]['engine']

export type MessageView = ReturnType<typeof viewMessage>

export interface Drained {
  readonly delivery?: string
  readonly messages: readonly MessageView[]
  readonly remaining: number
}

export function install(engine: Engine = 'sqlite', settings: Partial<Settings> = {}): AgentInstallation {
  const whole = { agents: {}, ...settings }
  if (engine === 'sqlite') return new AgentInstallation(whole)
  const schema = `inbox_${randomBytes(6).toString('hex')}`
  return new AgentInstallation(whole, { store: withParameters(inject('postgres'), { schema }) })
}

export const BOSS = 'boss' as ThreadId
export const CHILD = 'child' as ThreadId

/** A thread with nothing in its inbox, and one that tells it things. */
export async function withBoss(place: AgentInstallation): Promise<Store> {
  const store = await place.store()
  await store.apply(openThread, BOSS, 'conductor', null)
  await store.apply(openThread, CHILD, 'helper', BOSS)
  return store
}

export const message = (key: string, more: Partial<NewMessage> = {}): NewMessage => ({
  id: newMessageId(random),
  threadId: BOSS,
  from: CHILD,
  kind: 'completion',
  key,
  body: { state: 'succeeded', summary: `did ${key}` },
  ...more,
})

export async function tell(store: Store, count: number, words = ''): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    const body = { state: 'succeeded', summary: `did m${number} ${words}` }
    await store.apply(acceptMessage, message(`m${number}`, { body }))
  }
}
