import { expect, test } from 'vitest'

import { newMessageId, systemRandomness as random } from '../../src/base/ids.ts'
import { turnStopped } from '../../src/sessions/events.ts'
import type { Store } from '../../src/store/store.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { BOSS, HEARD, SELF, makePlace } from './support.ts'
import type { Place } from './support.ts'

const tell = (store: Store, text: string) =>
  store.apply(acceptMessage, {
    id: newMessageId(random),
    threadId: SELF,
    from: BOSS,
    kind: 'prompt',
    key: text,
    body: { text },
  })

const statesOf = async ({ store }: Place) => (await store.read(messagesOf, SELF)).map(({ state }) => state)

/** The ids that a call has brought. */
const idsIn = ({ value }: { readonly value?: object }) => {
  const { messages } = value as { messages: { readonly id: string }[] }
  return messages.map(({ id }) => id)
}

test('what is read from the inbox is yours with the next call, and comes again if nothing follows', async () => {
  const place = await makePlace()
  const { store, connect } = place
  await tell(store, 'first')
  const reader = await connect()
  const first = await reader.call('read_inbox')
  expect(first).toMatchObject({ value: { messages: [{ from: BOSS, kind: 'prompt', text: 'first' }], remaining: 0 } })
  expect(await statesOf(place)).toEqual(['leased'])
  expect(await reader.call('read_inbox')).toEqual({ value: { messages: [], remaining: 0 } })
  expect(await statesOf(place)).toEqual(['consumed'])

  await tell(store, 'second')
  const lost = await reader.call('read_inbox')
  process.kill(reader.pid, 'SIGKILL')
  const again = await connect()
  const second = await until('it comes again', async () => {
    const read = await again.call('read_inbox')
    return idsIn(read).length === 0 ? undefined : read
  })
  expect(idsIn(second)).toEqual(idsIn(lost))
  const delivery = second.value?.['delivery']
  expect(await again.call('acknowledge_messages', { delivery })).toMatchObject({ value: { acknowledged: 1 } })
  expect(await statesOf(place)).toEqual(['consumed', 'consumed'])
  await assertInvariants(store)
})

test('the good end of a turn says that it had what it read; without it, it comes again', async () => {
  const place = await makePlace()
  const { store, connect } = place
  await tell(store, 'third')
  const reader = await connect()
  expect(idsIn(await reader.call('read_inbox'))).toHaveLength(1)
  const end = { turn: 'p1', ordinal: 1, isActive: false, isPaused: false, deliveryId: 'd1' }
  await store.apply(turnStopped, HEARD, end)
  await reader.close()
  await until('it is acknowledged', async () => ((await statesOf(place))[0] === 'consumed' ? true : undefined))
  await assertInvariants(store)
})

test.for(['sqlite', 'postgres'] as const)(
  'a wait for a message goes on in another server after the first one was killed, and its answer is given again if it was lost [%s]',
  async (engine) => {
    const place = await makePlace(engine)
    const { store, connect } = place
    const killed = await connect()
    const args = { wait_seconds: 4_000 }
    const short = await killed.round('wait_for_message', args)
    expect(short.requestState).toBeTypeOf('string')
    // The next round is as long as a client bears; this one ends with the process.
    const cut = killed.round('wait_for_message', args, short.requestState).catch(() => 'cut')
    process.kill(killed.pid, 'SIGKILL')
    expect(await cut).toBe('cut')
    await tell(store, 'at last')

    const next = await connect()
    const found = await next.round('wait_for_message', args, short.requestState)
    expect(found).toMatchObject({ value: { messages: [{ text: 'at last' }] } })
    process.kill(next.pid, 'SIGKILL')
    const third = await connect()
    const once = await third.round('wait_for_message', args, short.requestState)
    expect(once).toEqual(found)
    expect(await third.call('read_inbox')).toEqual({ value: { messages: [], remaining: 0 } })
    expect(await statesOf(place)).toEqual(['consumed'])
    await assertInvariants(store)
  },
)

test('what a client brings back is what it was given: a changed or foreign state is refused', async () => {
  const { connect } = await makePlace()
  const { round } = await connect()
  const { requestState = '' } = await round('wait_for_message', { wait_seconds: 600 })
  const changed = `${requestState.slice(0, -2)}${requestState.endsWith('AA') ? 'BB' : 'AA'}`
  await expect(round('wait_for_message', {}, changed)).rejects.toThrow('requestState')
})

test('a client of an older protocol is told "not yet", and how to ask again', async () => {
  const { store, connect } = await makePlace()
  const { call } = await connect({ legacy: true })
  expect(await call('wait_for_message', { wait_seconds: 0 })).toMatchObject({ value: { status: 'not yet' } })
  const wait = call('wait_for_message', { wait_seconds: 40 })
  await tell(store, 'here I am')
  expect(await wait).toMatchObject({ value: { messages: [{ text: 'here I am' }] } })
  const question = { what: 'May I?', wait_seconds: 0 }
  const asked = await call('ask_approval', question)
  expect(asked).toMatchObject({ value: { decision: 'not yet' } })
  expect(await call('ask_approval', question)).toEqual(asked)
})
