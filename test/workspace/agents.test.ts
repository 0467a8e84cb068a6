import { expect, test } from 'vitest'

import { AgentInstallation } from '../support/agents.ts'
import { until } from '../support/holdfast.ts'
import { Repository } from '../support/repository.ts'
import { typed } from '../server/in-process.ts'
import { CHECK } from './doors.ts'
import type { Listed } from './doors.ts'

/** An agent that writes two files and tells somebody outside; what it writes decides whether its check passes. */
const coder = (root: string, total: string, more: object = {}) => ({
  replies: [
    {
      text: 'I write it down.',
      toolCalls: [
        { tool: 'files_write', input: { path: 'total.txt', content: `${total}\n` } },
        { tool: 'shell', input: { command: 'pwd > where.txt; cat total.txt' } },
        { tool: 'tell', input: { whom: 'everybody' } },
      ],
    },
    { text: 'Done.' },
  ],
  tools: ['files', 'shell', 'tell'],
  workspace: { root, mode: 'transaction', check: './check.sh', ...more },
})

const TELL = {
  effect: 'write',
  description: 'Tells somebody',
  input: { type: 'object', properties: { whom: { type: 'string' } } },
  command: ['cat'],
}

const project = () => new Repository({ 'total.txt': '1\n', 'check.sh': CHECK })

test('an agent with a model works in the tree of its run; its files land with its success', async () => {
  const repo = project()
  const place = new AgentInstallation({ agents: { coder: coder(repo.folder, '3') }, tools: { tell: TELL } })
  const type = (...args: string[]) => typed(['--config', place.configuration, ...args], { HOLDFAST_HOME: place.home })
  const ended = await type('send', '--agent', 'coder', '--wait', 'go')
  expect([ended.code, ended.stderr]).toEqual([0, expect.any(String)])
  expect([repo.read('total.txt'), repo.commits, repo.git('status', '--porcelain')]).toEqual(['3\n', 2, ''])
  // It was somewhere else meanwhile.
  expect(repo.read('where.txt')).not.toContain(`${repo.folder}\n`)
  const [{ state, agent }] = JSON.parse((await type('--json', 'workspace', 'list')).stdout) as [Listed]
  expect([state, agent]).toEqual(['landed', 'coder'])
})

test('what it did outside of its files is listed beside the discarded ones: nobody took it back', async () => {
  const repo = project()
  const before = repo.state
  const place = new AgentInstallation({ agents: { coder: coder(repo.folder, '2') }, tools: { tell: TELL } })
  const type = (...args: string[]) => typed(['--config', place.configuration, ...args], { HOLDFAST_HOME: place.home })
  expect((await type('send', '--agent', 'coder', '--wait', 'go')).code).toBe(1)
  expect(repo.state).toBe(before)
  const [{ runId, state }] = JSON.parse((await type('--json', 'workspace', 'list')).stdout) as [Listed]
  expect(state).toBe('discarded')
  const statement = (await type('runs', 'statement', runId)).stdout
  expect(statement).toContain('2 files (+2 −1) on main, discarded; your tree is as it was')
  expect(statement).toContain('What follows is outside of them, and nobody took it back')
  expect(statement).toContain('tell {"whom":"everybody"}')
  const json = JSON.parse((await type('--json', 'runs', 'statement', runId)).stdout) as {
    workspace: Listed
    effects: { tool: string }[]
  }
  expect([json.workspace.state, json.effects.some(({ tool }) => tool === 'tell')]).toEqual(['discarded', true])
})

test('a program that is an agent, and a command that is delegated, have one in the same words', async () => {
  const repo = project()
  const files = { root: repo.folder, mode: 'transaction', check: './check.sh' }
  const delegate = { command: ['sh', '-c', 'echo by hand > notes.txt'], workspace: files }
  const place = new AgentInstallation({
    agents: {
      writer: { command: ['sh', '-c', 'cat > asked.txt; echo 3 > total.txt; echo written'], workspace: files },
      lead: {
        replies: [
          { toolCalls: [{ tool: 'delegate', input: { agent: 'writer', task: 'write 3', mode: 'wait' } }] },
          { toolCalls: [{ tool: 'delegate', input: { ...delegate, mode: 'wait' } }] },
          { text: 'Both are in.' },
        ],
        tools: ['delegate', 'shell'],
      },
    },
  })
  await place.daemon()
  const { runId } = await place.send('lead')
  await until('the lead has ended', async () => ((await place.whole(runId)).endedAt === undefined ? undefined : true))
  expect((await place.whole(runId)).state).toBe('succeeded')
  // A run has ended a moment before its branch moves: what was decided is carried out afterwards.
  const listed = async () => {
    const { stdout } = await typed(['--json', 'workspace', 'list'], { HOLDFAST_HOME: place.home })
    return (JSON.parse(stdout) as Listed[]).map(({ state, agent }) => `${agent} ${state}`)
  }
  const both = ['command landed', 'writer landed']
  await until('both have landed', async () => (String(await listed()) === String(both) ? true : undefined))
  expect([repo.read('total.txt'), repo.read('asked.txt'), repo.read('notes.txt')]).toEqual([
    '3\n',
    'write 3',
    'by hand\n',
  ])
  expect([repo.commits, repo.git('status', '--porcelain')]).toEqual([3, ''])
})
