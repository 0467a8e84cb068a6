import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { actionsOfRun } from '../../src/actions/action.ts'
import { findApproval } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { askedMatters } from '../../src/actions/desk.ts'
import { newMessageId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { openThread } from '../../src/threads/thread.ts'
import { makeConductor } from '../hooks/conductor.ts'
import type { Conductor } from '../hooks/conductor.ts'
import type { Asked, Reply } from '../hooks/model-server.ts'
import { realClient, run } from '../hooks/support.ts'
import { PROGRAM, until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'

const CLAUDE = realClient('claude')
const PAL = 'pal' as ThreadId

const ours = (tool: string, input: object = {}): Reply => ({ tool: `mcp__holdfast__${tool}`, input })

/** What the model wants, one after the other. */
const STEPS: readonly Reply[] = [
  ours('send_message', { to: 'pal', text: 'may I pay?' }),
  ours('ask_approval', { what: 'Pay the rent?', details: { amount: 100 }, wait_seconds: 120 }),
  ours('wait_for_message', { wait_seconds: 60 }),
  { text: 'I have my answers.' },
]

const wireOf = ({ userHome }: Conductor['stage']) => join(userHome, 'wire.jsonl')

/** One `claude -p` with our server, and its tools there from the beginning. */
function claude({ installation, stage }: Conductor, prompt: string) {
  const file = join(stage.userHome, 'mcp.json')
  // What it says to the server is kept beside it.
  const args = ['-c', 'tee -a "$0" | "$@"', wireOf(stage), PROGRAM, '--config', installation.configuration, 'mcp']
  const server = { command: 'sh', args }
  writeFileSync(file, JSON.stringify({ mcpServers: { holdfast: server } }))
  const flags = ['--mcp-config', file, '--strict-mcp-config', '--allowedTools', 'mcp__holdfast']
  const env = { ...stage.env, ENABLE_TOOL_SEARCH: 'false' }
  return run(CLAUDE ?? 'claude', ['-p', prompt, '--output-format', 'json', ...flags], { env, cwd: stage.folder })
}

test.skipIf(CLAUDE === undefined)(
  'a real Claude Code sends a message, waits for the yes of a person and for an answer, all through our server',
  async () => {
    const conductor = await makeConductor(({ number }: Asked) => STEPS[number - 1] ?? { text: 'nothing more' })
    const { stage, store, model } = conductor
    await store.apply(openThread, PAL, 'claude', null)
    const session = claude(conductor, 'pay the rent')
    const { approval, run: turn } = await until('a person is asked', async () => (await store.read(askedMatters, 5))[0])
    expect(turn).toMatchObject({ agent: 'claude', state: 'running' })
    const [letter, ...more] = await store.read(messagesOf, PAL)
    expect(more).toEqual([])
    expect(letter).toMatchObject({ fromThread: turn.threadId, kind: 'note', body: { text: 'may I pay?' } })
    await until('it comes back with what it was given', async () =>
      readFileSync(wireOf(stage), 'utf8').includes('"requestState"') ? true : undefined,
    )
    const yes = { kind: 'approve', digest: approval.digest, by: 'ann', via: 'test' } as const
    expect(await store.apply(decideApproval, approval.id, yes)).toMatchObject({ kind: 'decided' })
    await until('it waits for a message', async () => (model.asked.length >= 3 ? true : undefined))
    const body = { text: 'pay it today' }
    const answer = {
      id: newMessageId(random),
      threadId: turn.threadId,
      from: PAL,
      kind: 'note',
      key: 'k',
      body,
    } as const
    await store.apply(acceptMessage, answer)
    const { stdout, stderr } = await session
    expect(JSON.parse(stdout), stderr).toMatchObject({ result: 'I have my answers.' })
    expect(model.asked[2]!.text).toContain('approved')
    expect(model.asked[3]!.text).toContain('pay it today')
    expect(await store.read(findApproval, approval.id)).toMatchObject({ state: 'consumed' })
    expect(await store.read(actionsOfRun, turn.id)).toMatchObject([{ tool: 'ask_approval', state: 'done', tries: 1 }])
    await until('what it read is acknowledged', async () => {
      const [read] = await store.read(messagesOf, turn.threadId)
      return read?.state === 'consumed' ? true : undefined
    })
    await assertInvariants(store)
  },
)
