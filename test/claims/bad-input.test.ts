import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'

import { expect, inject, test } from 'vitest'

import type { Script } from '../../src/model/script.ts'
import type { RunView } from '../../src/runs/view.ts'
import { AgentInstallation } from '../support/agents.ts'
import type { WholeRun } from '../support/agents.ts'
import { withParameters } from '../support/engines.ts'
import { Installation } from '../support/holdfast.ts'

type Replies = Script['replies']

interface Bad {
  /** What the model says before it comes to its senses; or what the tool does that it calls once. */
  readonly says?: Replies
  readonly does?: string
  /** What became of the call. */
  readonly action?: { readonly state: string; readonly words: RegExp }
  /** How the run ends; by default with the model's next answer. */
  readonly end?: RegExp
}

const call = (tool: string, input: unknown = {}) => ({ toolCalls: [{ tool, input }] })
const times = (count: number, reply: (n: number) => Replies[number]): Replies =>
  Array.from({ length: count }, (_, n) => reply(n))
const failed = (words: RegExp) => ({ state: 'failed', words })
const inDoubt = (words: RegExp) => ({ state: 'in_doubt', words })
const done = (words: RegExp) => ({ state: 'done', words })

/** What goes through it by calling itself runs out of stack. */
const DEEP = JSON.parse(`${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`) as unknown

/** What a database may choke on. */
const BYTES: Readonly<Record<string, Bad>> = {
  'a tool of an impossible name': { says: [call('a\u0000b\ud800')], action: failed(/there is no tool/) },
  'half a character': { says: [call('shell', { command: 'echo \ud800' })], action: failed(/./) },
  'a tool that complains in bytes': { does: "printf 'a\\000b\\377' >&2; exit 3", action: failed(/status 3: a.*b/) },
  'a tool that prints bytes': { does: "printf 'a\\000b\\377'", action: done(/a.*b/) },
}

const BAD: Readonly<Record<string, Bad>> = {
  ...BYTES,
  'a tool that does not exist': {
    says: [call('nonsense')],
    action: failed(/there is no tool "nonsense"; there are: /),
  },
  'wrong arguments': { says: [call('shell', { cmd: 'ls' })], action: failed(/command/) },
  'arguments that are no object': { says: [call('shell', 'ls')], action: failed(/object/) },
  'arguments of 10 MB': { says: [call('shell', { command: 'x'.repeat(10_000_000) })], action: failed(/at most/) },
  'arguments that never end': { says: [call('shell', DEEP)], action: failed(/./) },
  'an empty answer': { says: [{ text: '' }], end: /"text":"better"|answered with nothing/ },
  'only empty answers': { says: [{ text: '' }, { text: '' }], end: /answered with nothing/ },
  'the same wrong call for ever': { says: times(5, () => call('nonsense')), end: /same call of nonsense/ },
  'no end': { says: times(200, (n) => call('nonsense', { n })), end: /200 model calls/ },
  'a tool that fails': { does: 'echo no paper >&2; exit 3', action: failed(/status 3: no paper/) },
  'a tool that dies': { does: 'kill -9 $$', action: inDoubt(/killed by SIGKILL/) },
  'a tool that is not there': { does: '', action: failed(/could not be started/) },
  'a tool that prints 1 GB': { does: 'yes | head -c 1000000000', action: done(/"totalBytes":1000000000/) },
  'a tool that prints no JSON': { does: 'echo "{ not JSON"', action: done(/\{ not JSON/) },
  // Of its two seconds, what was left when its command started: on a busy machine the way there takes some.
  'a tool that hangs': { does: 'sleep 60', action: inDoubt(/timed out after [12]s/) },
}

/** An agent and a tool for each of them. */
function install(bad: Readonly<Record<string, Bad>>, store: { readonly store?: string } = {}): AgentInstallation {
  const names = Object.values(bad).map((each, index) => [each, `agent${index}`, `tool${index}`] as const)
  const agents = names.map(([{ says }, agent, tool]) => [
    agent,
    { replies: [...(says ?? [call(tool)]), { text: 'better' }, { text: 'better' }], tools: ['shell', tool] },
  ])
  const tools = names.map(([{ does = '' }, , tool]) => [
    tool,
    {
      effect: 'write',
      description: 'Misbehaves',
      command: does === '' ? ['no-such-program'] : ['/bin/sh', '-c', does],
      timeout: does.startsWith('sleep') ? '2s' : '60s',
    },
  ])
  return new AgentInstallation({ agents: Object.fromEntries(agents), tools: Object.fromEntries(tools) }, store)
}

async function expectThreadsToGoOn(bad: Readonly<Record<string, Bad>>, place: AgentInstallation): Promise<void> {
  await place.daemon(Object.keys(bad).length)
  const complaints = await Promise.all(
    Object.entries(bad).map(async ([what, each], index) => {
      const { runId, threadId } = await place.send(`agent${index}`)
      const wrong = complaintsAbout(each, await place.ended(runId))
      const next = await place.json<RunView>(['send', threadId, '--wait', 'and now?'])
      const stuck = next.state === 'succeeded' ? [] : [`its thread is stuck: ${next.error}`]
      return [...wrong, ...stuck].map((complaint) => `${what}: ${complaint}`)
    }),
  )
  expect(complaints.flat()).toEqual([])
}

function complaintsAbout({ action, end = /"text":"better"/ }: Bad, run: WholeRun): string[] {
  const ended = `${JSON.stringify(run.result)} ${run.error}`
  const wrong = end.test(ended) ? [] : [`it ended with ${ended}`]
  if (action === undefined) return wrong
  const said = run.actions.map(({ state, result, error }) => `${state}: ${JSON.stringify(result)} ${error}`)
  const [only = ''] = said
  const isRight = said.length === 1 && only.startsWith(action.state) && action.words.test(only)
  return isRight ? wrong : [...wrong, `its actions are ${said.join().slice(0, 300)}`]
}

test('whatever a model or a tool does, somebody is told what, and the thread goes on', () =>
  expectThreadsToGoOn(BAD, install(BAD)))

test('so it is on PostgreSQL, whose text cannot hold everything', () => {
  const schema = `bad_${randomBytes(6).toString('hex')}`
  return expectThreadsToGoOn(BYTES, install(BYTES, { store: withParameters(inject('postgres'), { schema }) }))
})

test('a configuration with a key that nobody knows is refused, with its place and what may have been meant', async () => {
  const place = new Installation()
  writeFileSync(place.configuration, '{\n  "agent": {}\n}\n')
  const { code, stderr } = await place.run(['status'])
  expect(stderr).toMatch(/holdfast\.config\.json:2:\d+.*agents/s)
  expect(code).toBe(2)
})
