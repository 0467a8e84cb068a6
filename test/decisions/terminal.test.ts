import { spawn } from 'node:child_process'

import { expect, onTestFinished, test } from 'vitest'

import { approvalsOfRun } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { storedRules } from '../../src/actions/rule.ts'
import { AgentInstallation } from '../support/agents.ts'
import { PROGRAM, until } from '../support/holdfast.ts'

const TERMINAL = new URL('./fixtures/terminal.mjs', import.meta.url).href

/** Somebody at a terminal, who answers what is asked. */
function sitDown(place: AgentInstallation) {
  const env = {
    PATH: process.env['PATH'],
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
    HOLDFAST_HOME: place.home,
    NODE_OPTIONS: `--import=${TERMINAL}`,
    TERM: 'dumb',
  }
  const child = spawn(PROGRAM, ['approvals'], { cwd: place.folder, env, stdio: 'pipe' })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  let [seen, screen, printed] = [0, '', '']
  child.stderr.on('data', (chunk: Buffer) => (screen += chunk.toString()))
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  /** What is on the screen since the last answer, once it asks. */
  const asked = async (question = '[q]uit') => {
    await until(`"${question}" is asked`, () => Promise.resolve(screen.indexOf(question, seen) >= 0 || undefined))
    const shown = screen.slice(seen)
    seen = screen.length
    return shown
  }
  return { asked, type: (key: string) => void child.stdin.write(`${key}\n`), ended, printed: () => printed }
}

test('in a terminal: what one reply asks for is seen together, and decided one by one [W1]', async () => {
  const entries = ['one', 'two\u202e', 'three', 'four', 'five']
  const toolCalls = entries.map((entry) => ({ tool: 'note', input: { entry } }))
  const place = new AgentInstallation({
    agents: { clerk: { replies: [{ text: 'All harmless.', toolCalls }, { text: 'Done.' }], tools: ['note'] } },
    tools: {
      note: {
        effect: 'write',
        description: 'Append one entry',
        input: { type: 'object', properties: { entry: { type: 'string' } }, required: ['entry'] },
        command: ['true'],
      },
    },
    policy: [],
  })
  expect(await place.run(['send', '--agent', 'clerk', '--wait', 'go'])).toMatchObject({ code: 5 })
  const store = await place.store()
  const runId = (await place.runOf('clerk'))!
  const approvals = () => store.read(approvalsOfRun, runId as never)
  const { asked, type, ended, printed } = sitDown(place)

  const first = await asked()
  expect(first).toContain('5 calls of one reply wait; each is decided by itself')
  for (const { id } of await approvals()) expect(first).toContain(id)
  expect(first).toContain('two\\u{202e}')
  expect(first).toContain("the model's own words about it (not checked by anybody):\n  | All harmless.")
  type('a')
  const second = await asked()
  expect(second).not.toContain('of one reply')
  expect(second).toContain('exact bytes')
  // No answer at all is none, and somebody else is quicker with this one.
  type('perhaps')
  await asked()
  const [, two] = await approvals()
  await store.apply(decideApproval, two!.id, { kind: 'skip', digest: two!.digest, by: 'bob', via: 'test' })
  type('d')
  expect(await asked()).toContain('has been decided already: skipped, by bob')
  type('always')
  expect(await asked('make it? [y/N]')).toContain('this makes a rule: allow')
  type('y')
  await asked()
  type('next')
  await asked()
  type('q')
  expect(await ended).toBe(0)
  expect(printed()).toContain('still waiting: 2')
  expect((await approvals()).map(({ state }) => state)).toEqual([
    'approved',
    'skipped',
    'approved',
    'pending',
    'pending',
  ])
  expect(await store.read(storedRules)).toMatchObject([{ rule: { tool: 'note', agent: 'clerk' } }])
})
