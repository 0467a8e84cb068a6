import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, inject, test } from 'vitest'

import type { RunId } from '../../src/base/ids.ts'
import { openChildren } from '../../src/runs/children.ts'
import { listRuns } from '../../src/runs/run.ts'
import type { RunView } from '../../src/runs/view.ts'
import { conversationOf } from '../../src/threads/conversation.ts'
import { AgentInstallation } from '../support/agents.ts'
import type { Settings } from '../support/agents.ts'
import { usualEngines, withParameters } from '../support/engines.ts'
import { processesWith, until } from '../support/holdfast.ts'

function install(engine: 'sqlite' | 'postgres', settings: Settings): AgentInstallation {
  if (engine === 'sqlite') return new AgentInstallation(settings)
  const schema = `delegation_${randomBytes(6).toString('hex')}`
  return new AgentInstallation(settings, { store: withParameters(inject('postgres'), { schema }) })
}

const delegate = (agent: string, mode: string, task = 'go') => ({ tool: 'delegate', input: { agent, task, mode } })
const shell = (command: string) => ({ tool: 'shell', input: { command } })

/** Goes on until the test lets it go, however slow the machine is. */
const WAITS = 'until [ -e go ]; do sleep 0.05; done'
const letGo = (place: AgentInstallation) => writeFileSync(join(place.folder, 'go'), '')

/** What the thread of this run was told and said, in order. */
async function told(place: AgentInstallation, runId: string): Promise<string[]> {
  const { threadId } = await place.whole(runId)
  const entries = await (await place.store()).read(conversationOf, threadId as never, 1)
  return entries.map(({ kind, body }) => `${kind === 'user' ? '>' : '<'} ${String(body.text)}`)
}

const completions = (lines: readonly string[]) => lines.filter((line) => line.startsWith('> [completion'))

/** The only child of a run that is at work. */
const childOf = (place: AgentInstallation, runId: string) =>
  until('its child is there', async () => {
    const [child] = await (await place.store()).read(openChildren, runId as RunId)
    return child
  })

describe.each(usualEngines)('on $name', ({ name: engine }) => {
  test('a parent waits for an agent and a command; the daemon is killed meanwhile; each is told once [inbox/effect-once] [inbox/busy-parent]', async () => {
    const place = install(engine, {
      agents: {
        conductor: {
          tools: ['delegate'],
          replies: [
            { toolCalls: [delegate('helper', 'wait'), delegate('coder', 'wait', 'write "it" $HOME')] },
            { text: 'Both have answered.' },
          ],
        },
        helper: {
          tools: ['shell'],
          replies: [{ toolCalls: [shell(`${WAITS}; echo x >>effects`)] }, { text: '12 beans' }],
        },
        coder: { command: ['/bin/sh', '-c', `${WAITS}; echo y >>effects; echo "did: $1"`, 'coder', '{prompt}'] },
      },
    })
    const daemon = await place.daemon()
    const { runId } = await place.send('conductor')
    await place.is(runId, 'parked')
    const children = await (await place.store()).read(openChildren, runId)
    expect(children).toHaveLength(2)
    const areAtWork = () => children.every(({ id }) => processesWith(`HOLDFAST_RUN=${id}`).length > 0)
    await until('both are at work', () => Promise.resolve(areAtWork() || undefined))
    daemon.kill('SIGKILL')
    await daemon.ended
    await place.daemon()
    letGo(place)
    expect(await place.ended(runId)).toMatchObject({ state: 'succeeded', result: { text: 'Both have answered.' } })
    const heard = completions(await told(place, runId))
    expect(heard).toHaveLength(2)
    expect(heard.join('\n')).toContain('12 beans')
    expect(heard.join('\n')).toContain('did: write "it" $HOME')
    expect(readFileSync(join(place.folder, 'effects'), 'utf8').split('\n').toSorted()).toEqual(['', 'x', 'y'])
  })

  test('a busy parent is told at its next turn, and does not end before its child', async () => {
    const place = install(engine, {
      agents: {
        conductor: {
          tools: ['delegate', 'shell'],
          replies: [
            { toolCalls: [delegate('helper', 'background')] },
            { toolCalls: [shell('while [ ! -e helped ]; do sleep 0.05; done')] },
            { text: 'I was busy.' },
            { text: 'Now I know.' },
          ],
        },
        helper: {
          tools: ['shell'],
          replies: [{ toolCalls: [shell('touch helped')] }, { text: 'helped', delayMs: 300 }],
        },
      },
    })
    await place.daemon()
    const { runId } = await place.send('conductor')
    const run = await place.ended(runId)
    const lines = await told(place, runId)
    expect(completions(lines)).toHaveLength(1)
    expect(run).toMatchObject({ state: 'succeeded' })
    // Whether it came before or after "I was busy", the run went on until it was heard.
    expect(lines.at(-1)).toBe(`< ${(run.result as { text: string }).text}`)
    expect(lines.findIndex((line) => line.startsWith('> [completion'))).toBeLessThan(lines.length - 1)
  })

  test('a detached child outlives the run that started it, and wakes its thread', async () => {
    const place = install(engine, {
      agents: {
        conductor: {
          tools: ['delegate'],
          replies: [{ toolCalls: [delegate('helper', 'detached')] }, { text: 'Started.' }, { text: 'It is done.' }],
        },
        helper: { tools: ['shell'], replies: [{ toolCalls: [shell(WAITS)] }, { text: 'helped' }] },
      },
    })
    await place.daemon()
    const { runId, threadId } = await place.send('conductor')
    expect(await place.ended(runId)).toMatchObject({ result: { text: 'Started.' } })
    letGo(place)
    const second = await until('a second run has ended', async () => {
      const runs = await (await place.store()).read(listRuns, { threadId, limit: 5 })
      return runs.find((run) => run.id !== runId && run.state === 'succeeded')
    })
    expect(second).toMatchObject({ result: { text: 'It is done.' } })
  })

  test('cancelling a parent returns when its children are dead, down to the last process [control/stop-means-stopped] [runs/cancel-is-final]', async () => {
    const hangs = `trap '' TERM; setsid sleep 307 & sleep 307`
    const place = install(engine, {
      agents: {
        conductor: { tools: ['delegate'], replies: [{ toolCalls: [delegate('middle', 'wait')] }] },
        middle: {
          tools: ['delegate', 'shell'],
          replies: [{ toolCalls: [delegate('coder', 'background'), shell(hangs)] }],
        },
        coder: { command: ['/bin/sh', '-c', hangs] },
      },
    })
    await place.daemon()
    const { runId, threadId } = await place.send('conductor')
    await place.is(runId, 'parked')
    const middle = await childOf(place, runId)
    const coder = await childOf(place, middle.id)
    const left = () => [middle.id, coder.id].flatMap((id) => processesWith(`HOLDFAST_RUN=${id}`))
    await until('both are at work', () => Promise.resolve(left().length >= 4 || undefined))
    expect(await place.json<RunView>(['runs', 'cancel', runId])).toMatchObject({ state: 'cancelled' })
    expect(left()).toEqual([])
    for (const { id } of [middle, coder]) expect(await place.whole(id)).toMatchObject({ state: 'cancelled' })
    // Nobody asked for another turn.
    expect(await (await place.store()).read(listRuns, { threadId, limit: 5 })).toHaveLength(1)
  })
})

test('delegation without end ends at its limit, with its code', async () => {
  const again = (other: string) => [{ toolCalls: [delegate(other, 'wait')] }, { text: 'I see.' }]
  const place = new AgentInstallation({
    agents: {
      ping: { tools: ['delegate'], replies: again('pong') },
      pong: { tools: ['delegate'], replies: again('ping') },
    },
  })
  await place.daemon()
  const { runId } = await place.send('ping')
  expect(await place.ended(runId)).toMatchObject({ state: 'succeeded' })
  const runs = await (await place.store()).read(listRuns, { limit: 20 })
  expect(runs).toHaveLength(5)
  expect(runs.filter(({ state }) => state === 'failed')).toMatchObject([
    { code: 'budget', error: expect.stringContaining('4 levels deep') as string },
  ])
})

test('without a daemon `send --wait` carries out the children too', async () => {
  const place = new AgentInstallation({
    agents: {
      conductor: { tools: ['delegate'], replies: [{ toolCalls: [delegate('coder', 'wait')] }, { text: 'Heard.' }] },
      coder: { command: ['cat'] },
    },
  })
  const run = await place.ask('conductor')
  expect(run).toMatchObject({ state: 'succeeded', result: { text: 'Heard.' } })
  expect(completions(await told(place, run.id))[0]).toMatch(/\n--- msg_\w+ ---\ngo\n--- msg_\w+ ---$/)
})

test('agents that delegate in a circle are refused where they are configured', async () => {
  const place = new AgentInstallation({
    agents: {
      a: { tools: ['delegate'], delegates: ['b'], replies: [] },
      b: { tools: ['delegate'], delegates: ['a'], replies: [] },
    },
  })
  const { code, stderr } = await place.run(['send', '--agent', 'a', 'go'])
  expect(code).toBe(2)
  expect(stderr).toContain('goes in a circle: a → b → a')
})
