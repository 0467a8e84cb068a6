import { describe, expect, test } from 'vitest'

import { eventsAfter } from '../../src/events/event.ts'
import type { ToolContext } from '../../src/loop/ports.ts'
import type { Store } from '../../src/store/store.ts'
import type { ServerTool } from '../../src/tools/mcp/connection.ts'
import { openMcpTools } from '../../src/tools/mcp/open-tools.ts'
import type { McpServers } from '../../src/tools/mcp/servers.ts'
import { FIRST_SIGHT, acceptTool, allPins, pinTools, pinsOf, seen } from '../../src/tools/mcp/pins.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'

const tool = (name: string, description = 'Does things.', more: Partial<ServerTool> = {}) =>
  seen({ name, description, inputSchema: { type: 'object' }, ...more })

const states = async (store: Store) =>
  Object.fromEntries(
    (await store.read(pinsOf, 'files')).map((pin) => [
      pin.tool,
      [pin.definition?.description ?? null, pin.offered?.description ?? null],
    ]),
  )

test('the hash is of what is said, not of how it is written', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' }, b: {} } }
  const same = { properties: { b: {}, a: { type: 'string' } }, type: 'object' }
  expect(tool('t', 'd', { inputSchema: schema }).digest).toBe(tool('t', 'd', { inputSchema: same }).digest)
  const all = [
    tool('t'),
    tool('u'),
    tool('t', 'D'),
    tool('t', 'Does things.', { inputSchema: schema }),
    tool('t', 'Does things.', { annotations: { readOnlyHint: true } }),
  ]
  expect(new Set(all.map(({ digest }) => digest)).size).toBe(all.length)
})

describe.each(engines)('$name', (engine) => {
  const database = () => engine.database()

  test('the first list of a server is accepted, what comes later waits for a person', async () => {
    const store = await (await database()).open()
    expect(await store.apply(pinTools, 'files', [tool('a'), tool('b')])).toEqual({ kind: 'first', tools: ['a', 'b'] })
    expect(await store.apply(pinTools, 'files', [tool('a'), tool('b')])).toEqual({ kind: 'later', offered: [] })
    const changed = [tool('a'), tool('b', 'Evil.'), tool('c', 'New.')]
    expect(await store.apply(pinTools, 'files', changed)).toEqual({ kind: 'later', offered: ['b', 'c'] })
    expect(await store.apply(pinTools, 'files', changed)).toEqual({ kind: 'later', offered: [] })
    expect(await states(store)).toEqual({
      a: ['Does things.', null],
      b: ['Does things.', 'Evil.'],
      c: [null, 'New.'],
    })
    // Another server is another first time.
    expect(await store.apply(pinTools, 'web', [tool('b', 'Evil.')])).toMatchObject({ kind: 'first' })
    expect(await store.read(allPins, 10)).toHaveLength(4)
    const events = await store.read(eventsAfter, 0, 10)
    expect(events.map(({ type }) => type)).toEqual(['tool.pinned', 'tool.changed', 'tool.pinned'])
    await assertInvariants(store)
  })

  test('a yes is for exactly the definition that was shown, once and for all', async () => {
    const store = await (await database()).open()
    await store.apply(pinTools, 'files', [tool('a')])
    const [evil, worse] = [tool('a', 'Evil.'), tool('a', 'Worse.')]
    await store.apply(pinTools, 'files', [evil])
    await store.apply(pinTools, 'files', [worse])
    const yes = (digest: string) => store.apply(acceptTool, { server: 'files', tool: 'a', digest, by: 'ann' })
    expect(await yes(evil.digest)).toBe('gone')
    expect(await states(store)).toEqual({ a: ['Does things.', 'Worse.'] })
    expect(await yes(worse.digest)).toBe('accepted')
    expect(await yes(worse.digest)).toBe('accepted')
    expect(await states(store)).toEqual({ a: ['Worse.', null] })
    expect(await store.read(pinsOf, 'files')).toMatchObject([{ acceptedBy: 'ann', digest: worse.digest }])
    await assertInvariants(store)
  })

  test('a definition that is again as it was accepted needs nobody', async () => {
    const store = await (await database()).open()
    await store.apply(pinTools, 'files', [tool('a')])
    await store.apply(pinTools, 'files', [tool('a', 'Evil.')])
    await store.apply(pinTools, 'files', [tool('a')])
    expect(await states(store)).toEqual({ a: ['Does things.', null] })
    expect(await store.read(pinsOf, 'files')).toMatchObject([{ acceptedBy: FIRST_SIGHT }])
    await assertInvariants(store)
  })

  test('of two processes that use a server for the first time, one is first', async () => {
    const place = await database()
    const [one, other] = [await place.open(), await place.open()]
    const answers = await Promise.all([
      one.apply(pinTools, 'files', [tool('a')]),
      other.apply(pinTools, 'files', [tool('a', 'Other.'), tool('b')]),
    ])
    expect(answers.map(({ kind }) => kind).toSorted()).toEqual(['first', 'later'])
    const pins = await one.read(pinsOf, 'files')
    expect(pins.filter(({ digest }) => digest !== null)).toHaveLength(answers[0].kind === 'first' ? 1 : 2)
    await assertInvariants(one)
  })

  test('a changed tool that is not called a second time says only that the second call did not begin', async () => {
    const store = await (await database()).open()
    const offers = { listed: [] as ServerTool[] }
    const offer = (description: string) =>
      (offers.listed = [{ name: 'pay', description, inputSchema: { type: 'object' } }])
    const rules = { kind: 'stdio', command: ['x'], timeoutMs: 1_000, effects: {}, repeat: {}, once: {}, identity: {} }
    const connection = { listing: () => Promise.resolve(offers.listed) }
    const servers = {
      definition: () => ({ ...rules, idempotent: ['pay'] }),
      whichOne: () => 'the bank',
      use: (_server: string, _user: string, _signal: AbortSignal, work: (with_: typeof connection) => unknown) =>
        work(connection),
    } as unknown as McpServers
    const { signal } = new AbortController()
    const opened = (resumed: boolean) =>
      openMcpTools([{ server: 'bank' }], { servers, store, warn: () => {} }, { id: 'run', resumed }, signal)
    offer('Pays.')
    await opened(false)
    offer('Pays twice.')
    const [pay] = (await opened(true)).values()
    expect(pay).toMatchObject({ idempotent: true })
    expect(await pay!.perform({}, { signal } as ToolContext)).toMatchObject({ kind: 'failed', unbegun: true })
  })
})
