import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, inject, test } from 'vitest'

import type { ThreadId } from '../../src/base/ids.ts'
import type { RunView } from '../../src/runs/view.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { AgentInstallation } from '../support/agents.ts'
import type { Settings } from '../support/agents.ts'
import { withParameters } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'

const engines = [{ engine: 'sqlite' }, { engine: 'postgres' }] as const

function install(engine: 'sqlite' | 'postgres', settings: Settings): AgentInstallation {
  if (engine === 'sqlite') return new AgentInstallation(settings)
  const schema = `send_wait_${randomBytes(6).toString('hex')}`
  return new AgentInstallation(settings, { store: withParameters(inject('postgres'), { schema }) })
}

interface Sent {
  readonly threadId: ThreadId
}

const statesOf = async (place: AgentInstallation, { threadId }: Sent) =>
  (await (await place.store()).read(messagesOf, threadId)).map(({ state }) => state)

describe.each(engines)('send --wait on $engine', ({ engine }) => {
  test('it reports the answer to its own message, not the one to the message before', async () => {
    const script = 'while test "$1" = first && ! test -e go; do sleep 0.1; done; echo "answer to $1"'
    const command = ['/bin/sh', '-c', script, 'coder', '{prompt}']
    const place = install(engine, { agents: { coder: { command } } })
    await place.daemon()
    const sent = await place.json<Sent>(['send', '--agent', 'coder', 'first'])
    await until('the first is at work', async () => (await statesOf(place, sent))[0] === 'consumed' || undefined)
    const second = place.start(['--json', 'send', '--wait', sent.threadId, 'second'])
    await until('the second is sent', async () => (await statesOf(place, sent)).length === 2 || undefined)
    writeFileSync(join(place.folder, 'go'), '')
    const { stdout } = await second.ended
    expect(JSON.parse(stdout) as RunView).toMatchObject({ state: 'succeeded', result: { text: 'answer to second' } })
  })

  test('it does not wait for ever for a message that was drained by hand', async () => {
    const place = install(engine, { agents: { clerk: { replies: [] } } })
    const letter = ['--agent', 'clerk', '--key', 'k', 'hello']
    const sent = await place.json<Sent>(['send', ...letter])
    expect((await place.run(['inbox', 'drain', sent.threadId])).stdout).toContain('hello')
    const waiting = place.start(['send', '--wait', ...letter])
    const { code, stderr } = await waiting.ended
    expect(code).not.toBe(0)
    expect(stderr).toContain('taken by hand')
  }, 60_000)

  test('a message that is longer than its row may be is sent and answered', async () => {
    const place = install(engine, { agents: { clerk: { replies: [{ text: 'ok' }] } } })
    const { code, stdout, stderr } = await place.run(['send', '--agent', 'clerk', '--wait', 'x'.repeat(40_000)])
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'ok\n', stderr: '' })
  })
})
