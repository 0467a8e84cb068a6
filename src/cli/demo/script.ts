import { join } from 'node:path'

/** Everything that a model or a tool of the demo says and does, as a person would write it into their own files. */

/** Each reply costs this much, so that the bill says how many there were. */
export const TOKENS_A_CALL = 100
export const TOLD_SECONDS = 2

const usage = { inputTokens: TOKENS_A_CALL }

/** What the files of the demo's folder say, by their names. */
export function demoFiles(folder: string, node: string): Record<string, unknown> {
  return {
    'holdfast.config.json': configuration(folder, node),
    'clerk.json': {
      replies: [
        { text: 'Three entries.', toolCalls: ['one', 'two', 'three'].map((entry) => call('note', entry)), usage },
        { text: 'All three are in the ledger.', usage },
      ],
    },
    'payer.json': {
      replies: [{ toolCalls: [call('pay', 'rent')] }, { text: 'The rent is paid: somebody has looked.' }],
    },
    'careful-payer.json': {
      replies: [{ toolCalls: [call('pay_and_look', 'power')] }, { text: 'The power bill is paid.' }],
    },
    'poet.json': {
      replies: [
        { error: { status: 429, retryAfter: String(TOLD_SECONDS), message: 'too many requests' }, usage },
        { text: 'Slow is smooth.', usage },
      ],
    },
    'runner.json': {
      replies: [{ toolCalls: [{ tool: 'shell', input: { command: stubbornCommand(folder, node) } }] }],
    },
  }
}

const call = (tool: string, entry: string) => ({ tool, input: { entry } })

function configuration(folder: string, node: string) {
  const program = [node, join(folder, 'ledger.mjs')]
  const tool = (file: string) => ({
    effect: 'write',
    description: `Append one entry to ${file}`,
    input: { type: 'object', properties: { entry: { type: 'string' } }, required: ['entry'] },
    identity: ['entry'],
    command: [...program, 'append', join(folder, file)],
  })
  const agent = (name: string, ...tools: string[]) => ({ model: `scripted:./${name}.json`, tools })
  return {
    agents: {
      clerk: agent('clerk', 'note'),
      payer: agent('payer', 'pay'),
      'careful-payer': agent('careful-payer', 'pay_and_look'),
      poet: agent('poet'),
      runner: agent('runner', 'shell'),
    },
    // Nobody sits beside a demo to say yes: its own tools may write, everything else would ask.
    policy: ['note', 'pay', 'pay_and_look', 'shell'].map((name) => ({ tool: name, decision: 'allow' })),
    tools: {
      note: tool('ledger.txt'),
      pay: tool('payments.txt'),
      pay_and_look: { ...tool('payments.txt'), probe: [...program, 'probe', join(folder, 'payments.txt')] },
    },
  }
}

/** A shell that ignores TERM, and under it what ignores TERM and forks into a session of its own. */
const stubbornCommand = (folder: string, node: string) =>
  `trap '' TERM; ${quoted(node)} ${quoted(join(folder, 'stubborn.mjs'))} & wait`

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
