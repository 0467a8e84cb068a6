import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { hear } from '../../src/hooks/hear.ts'
import { findSession } from '../../src/sessions/session.ts'
import { listRuns } from '../../src/runs/run.ts'
import type { Store } from '../../src/store/store.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { findThread } from '../../src/threads/thread.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { injected, makeConductor, timesIn } from './conductor.ts'
import type { Asked, Reply } from './model-server.ts'
import { makeKiller, realClient, stopSays } from './support.ts'

const CLAUDE = realClient('claude')
const ROUNDS = 10

/** A child that is a session itself: its turn ends, and its parent is told. */
async function childStops(store: Store, parent: string, name: string, times = 1): Promise<void> {
  const input = JSON.stringify(stopSays(`the words of ${name}`, {}, { session: name }))
  const told = { client: 'claude', input, ordinal: 1, shown: null, startedFrom: parent } as const
  for (let time = 0; time < times; time += 1) await hear({ store, random }, told)
}

const waitHere = (folder: string, round: string) =>
  `echo "$HOLDFAST_THREAD" > ${folder}/thread-${round}; while [ ! -e ${folder}/gate-${round} ]; do sleep 0.02; done`

const told = async (file: string) => {
  await until(`${file} is there`, async () =>
    existsSync(file) && readFileSync(file, 'utf8').trim() !== '' ? true : undefined,
  )
  return readFileSync(file, 'utf8').trim()
}

test.skipIf(CLAUDE === undefined)(
  'five children finish while a real Claude Code is in its turn: the next request has each of them once, ten times in a row [M1] [M3] [M10] [inbox/busy-parent] [inbox/effect-once]',
  async () => {
    let folder = ''
    const conductor = await makeConductor(({ text }: Asked): Reply => {
      const round = /ROUND-(\d+)-/.exec(text)?.[1] ?? '0'
      if (!text.includes('tool_result')) return { bash: waitHere(folder, round) }
      return { text: text.includes('Stop hook feedback') ? 'I have read them.' : 'My own work is done.' }
    })
    const { installation, stage, store, model, ask } = conductor
    folder = stage.folder
    await installation.up()
    for (let round = 1; round <= ROUNDS; round += 1) {
      const from = model.asked.length
      const turn = ask(`ROUND-${round}- conduct`)
      const thread = await told(join(folder, `thread-${round}`))
      const crash = installation.run(['run', '--parent', thread, '--', 'sh', '-c', `echo crash-${round}; kill -9 $$`])
      for (const name of ['a', 'b', 'c']) await childStops(store, thread, `${name}-${round}-x`)
      await childStops(store, thread, `twice-${round}-x`, 2)
      await crash
      writeFileSync(join(folder, `gate-${round}`), '')
      expect(await turn).not.toBe('')
      const asked = model.asked.slice(from)
      expect(asked.map((each) => injected(each).length)).toEqual([0, 0, 1])
      const texts = injected(asked.at(-1)!)
      const words = ['a', 'b', 'c', 'twice'].map((name) => `the words of ${name}-${round}-x`)
      expect([...words, `crash-${round}`].map((word) => timesIn(texts, word))).toEqual([1, 1, 1, 1, 1])
      const messages = await store.read(messagesOf, thread as ThreadId)
      expect(messages.map(({ state, kind }) => `${state} ${kind}`).toSorted()).toEqual([
        ...Array<string>(4).fill('consumed completion'),
        'consumed error',
      ])
    }
    await assertInvariants(store)
  },
)

test.skipIf(CLAUDE === undefined)(
  'a real Claude Code that is killed between the answer of its Stop and the next request gets the messages again, and never a third time [M5] [inbox/never-lost]',
  async () => {
    const killer = makeKiller('Number(process.env.CLAUDE_PID)')
    const conductor = await makeConductor(() => ({ text: 'done' }), { stopHook: killer.path })
    const { store, model, ask } = conductor
    const session = await ask('begin')
    const thread = `claude-${session}`
    await childStops(store, thread, 'child-x')
    expect(await ask('go on', '--resume', session)).toBe('')
    expect(killer.answer()).toContain('the words of child-x')
    expect(model.asked.flatMap(injected)).toEqual([])
    expect(await store.read(messagesOf, thread as ThreadId)).toMatchObject([{ state: 'leased' }])
    const resumed = await ask('and now?', '--resume', session)
    expect(resumed).toBe(session)
    expect(timesIn(injected(model.asked.at(-1)!), 'the words of child-x')).toBe(1)
    expect(await store.read(messagesOf, thread as ThreadId)).toMatchObject([{ state: 'consumed' }])
    await ask('anything else?', '--resume', session)
    expect(timesIn(injected(model.asked.at(-1)!), 'the words of child-x')).toBe(1)
    await assertInvariants(store)
  },
)

test.skipIf(CLAUDE === undefined)(
  'a claude -p that is started inside a session is its child, and is never mistaken for it [M10]',
  async () => {
    const script = ({ body, text }: Asked): Reply => {
      const words = JSON.stringify(body.messages)
      if (words.includes('NESTED-PROMPT') && !words.includes('OUTER-PROMPT')) return { text: 'I am the inner one.' }
      return text.includes('tool_result')
        ? { text: 'The inner one has ended.' }
        : { bash: `${CLAUDE} -p NESTED-PROMPT` }
    }
    const { store, model, ask } = await makeConductor(script)
    const outer = await ask('OUTER-PROMPT')
    const runs = await store.read(listRuns, { limit: 10 })
    const inner = runs.map(({ threadId }) => threadId).find((id) => id !== `claude-${outer}`)
    expect(inner).toBeDefined()
    expect(await store.read(findThread, inner!)).toMatchObject({ parentId: `claude-${outer}` })
    expect(await store.read(findThread, `claude-${outer}` as ThreadId)).toMatchObject({ parentId: null })
    expect(timesIn(injected(model.asked.at(-1)!), 'I am the inner one.')).toBe(1)
    expect(runs).toHaveLength(2)
    const turn = runs.find(({ threadId }) => threadId === inner)
    expect(turn).toMatchObject({ state: 'succeeded', result: { text: 'I am the inner one.' } })
    expect(turn!.outputTokens).toBeGreaterThan(0)
    expect(await store.read(findSession, `claude:${outer}`)).toMatchObject({ state: 'ended', deliveryId: null })
    await assertInvariants(store)
  },
)
