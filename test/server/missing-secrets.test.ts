import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { AgentInstallation } from '../support/agents.ts'
import { temporaryFolder } from '../support/engines.ts'
import type { Running } from '../support/holdfast.ts'

const VALUE = 'the-value-of-the-first-day-1'
const NEW_VALUE = 'the-value-of-the-next-day-2'

/** Keeps what it reads, and says it again. */
const RECEIVER = `
import { appendFileSync, readFileSync } from 'node:fs'
const input = readFileSync(0, 'utf8')
appendFileSync(process.argv[2], input + '\\n')
console.log(input)
`

function makePlace() {
  const folder = temporaryFolder()
  const received = join(folder, 'received.jsonl')
  writeFileSync(received, '')
  writeFileSync(join(folder, 'receiver.mjs'), RECEIVER)
  const place = new AgentInstallation({
    agents: {
      keeper: {
        tools: ['keep'],
        replies: [{ toolCalls: [{ tool: 'keep', input: { value: VALUE } }] }, { text: 'over' }],
      },
    },
    tools: {
      keep: {
        effect: 'write',
        description: 'keeps it',
        input: { type: 'object', properties: { value: { type: 'string' } } },
        command: [process.execPath, join(folder, 'receiver.mjs'), received],
      },
    },
    policy: [{ tool: 'keep', decision: 'ask' }],
    lease: '2s',
  })
  return { place, received: () => readFileSync(received, 'utf8').split('\n').filter(Boolean) }
}

const up = async (place: AgentInstallation, env: Record<string, string>): Promise<Running> => {
  const daemon = place.start(['up'], env)
  await daemon.said('holdfast: up:')
  return daemon
}

const stop = async (daemon: Running) => {
  daemon.kill('SIGTERM')
  await daemon.ended
}

/** A run that waits for leave to use the secret, and a daemon that has stopped meanwhile. */
async function untilAsked(place: AgentInstallation): Promise<{ runId: string; approve: () => Promise<unknown> }> {
  const daemon = await up(place, { DAILY_TOKEN: VALUE })
  const { runId } = await place.send('keeper')
  await place.is(runId, 'parked')
  await stop(daemon)
  const [approval] = await place.json<{ id: string }[]>(['approvals', 'list'])
  return { runId, approve: () => place.run(['approvals', 'approve', approval!.id]) }
}

test('a value that was replaced between the yes and the start is put in as it is now [approvals/bound]', async () => {
  const { place, received } = makePlace()
  const { runId, approve } = await untilAsked(place)
  await approve()
  const daemon = await up(place, { DAILY_TOKEN: NEW_VALUE })
  await place.ended(runId)
  await stop(daemon)
  expect(received()).toEqual([JSON.stringify({ value: NEW_VALUE })])
})

test('where the value is not known, the call certainly did not happen, and its error says what to set', async () => {
  const { place, received } = makePlace()
  const { runId, approve } = await untilAsked(place)
  await approve()
  const daemon = await up(place, {})
  const { actions } = await place.ended(runId)
  await stop(daemon)
  expect(actions[0]).toMatchObject({ state: 'failed' })
  expect(actions[0]?.error).toContain('secrets/unknown: it needs DAILY_TOKEN')
  expect(received()).toEqual([])
})

test('a command whose argument is not known here is not started, and says so', async () => {
  const { place, received } = makePlace()
  const sent = await place.run(['--json', 'run', '--detach', '--', 'printf', '%s', VALUE], { DAILY_TOKEN: VALUE })
  const { id } = JSON.parse(sent.stdout) as { id: string }
  const daemon = await up(place, {})
  const run = await place.ended(id)
  await stop(daemon)
  expect(run).toMatchObject({ state: 'failed', code: 'spawn' })
  expect(run.error).toContain('it needs DAILY_TOKEN, whose value is not known here')
  expect(received()).toEqual([])
})

test('the processes of ours leave no memory in core files; the commands of runs may', async () => {
  const { place } = makePlace()
  const daemon = await up(place, {})
  const filter = (pid: number) => Number(`0x${readFileSync(`/proc/${pid}/coredump_filter`, 'utf8').trim()}`)
  expect(filter(daemon.pid)).toBe(0)
  const run = await place.json<{ result: { stdout: { head: string } } }>([
    'run',
    '--',
    'cat',
    '/proc/self/coredump_filter',
  ])
  expect(Number(`0x${run.result.stdout.head.trim()}`)).toBe(filter(process.pid))
  await stop(daemon)
})
