import { HoldfastError } from '../../src/base/errors.ts'
import { parseConfig } from '../../src/config/config.ts'
import type { Dice } from '../simulation/seeded.ts'
import { bentText, oddJson } from './odd.ts'
import { showsStack } from './surface.ts'
import type { Input, Surface } from './surface.ts'

const command = ['node', 'ledger.mjs', 'append']
const schema = { type: 'object', properties: { entry: { type: 'string' } }, required: ['entry'] }

/** A configuration with something under nearly every setting, to begin with. */
const WHOLE = {
  agents: {
    clerk: {
      model: 'scripted:./clerk.json',
      system: 'You keep the ledger.',
      tools: ['ledger_append', 'mcp:notes', 'files'],
      limits: { turns: 5, tokens: 1_000, costUsd: 0.5, timeout: '10m' },
      contextTokens: 10_000,
    },
    helper: { model: 'anthropic/claude-sonnet-5', tools: ['shell', 'files', 'http', 'delegate', 'schedule_followup'] },
    coder: { client: 'claude', workspace: { folder: '.', mode: 'transaction', check: 'npm test' } },
    other: { command: ['my-agent', '{prompt}'], timeout: '1h' },
  },
  tools: {
    ledger_append: {
      effect: 'write',
      description: 'Append one entry',
      input: schema,
      identity: ['entry'],
      repeat: 'once',
      command,
      probe: command,
      idempotent: false,
      timeout: '10s',
    },
  },
  mcpServers: { notes: { command: ['node', 'notes.mjs'], env: { KEY: '${KEY}' } }, far: { url: 'https://mcp.test/' } },
  policy: [
    { tool: 'ledger_append', decision: 'allow' },
    { tool: 'shell', decision: 'ask', agent: 'helper' },
  ],
  prices: { 'anthropic/claude-sonnet-5': { input: 3, output: 15 } },
  http: { allowPrivate: ['127.0.0.1:8080'] },
  wake: { claude: ['tmux', 'send-keys'] },
  notify: [{ kind: 'command', command }],
  webhooks: { secret: '${WEBHOOK_SECRET}' },
  secrets: { key: { env: 'KEY' } },
  approvals: { expire: '7d' },
  retention: { runs: '30d' },
  lease: '15s',
  telemetry: { content: false },
  capacity: { total: 4, eachAgent: 2, agents: { clerk: 1 } },
}

function draw(dice: Dice): Input {
  const some = Object.fromEntries(Object.entries(WHOLE).filter(() => dice.chance(0.5)))
  const text = oddJson(dice, some)
  if (dice.chance(0.003)) return [dice.pick(['[', '{"a":', '[[']).repeat(dice.pick([100, 10_000, 200_000]))]
  return [dice.chance(0.1) ? bentText(dice, bentText(dice, text)) : text]
}

/** It is a configuration, or it is told what is wrong with it, where, and what to do. */
async function feed(input: Input): Promise<readonly string[]> {
  try {
    const { agents, policy } = parseConfig(input.join(''), 'holdfast.config.json')
    if (!(agents instanceof Map) || !Array.isArray(policy)) return ['it was read as something that is no configuration']
  } catch (error) {
    if (!(error instanceof HoldfastError))
      return [`it ended in ${error instanceof Error ? error.stack : String(error)}`]
    if (error.code !== 'usage/config') return [`its error has the code ${error.code}`]
    // Of several, each line ends in what to do about it.
    const isOne = error.remedy !== undefined
    if (!isOne && !/wrong:\n[^]+; /.test(error.message)) return [`its error does not say what to do: ${error.message}`]
    if (showsStack(error.message)) return ['its error shows where in the code it was found']
    if (error.message.length > 100_000) return [`its error has ${error.message.length} characters`]
  }
  return polluted()
}

/** Whether something was put where every object looks. */
export function polluted(): readonly string[] {
  const stranger = Object.keys(Object.prototype)[0]
  return stranger === undefined ? [] : [`every object now has "${stranger}"`]
}

export const config: Surface = {
  name: 'configuration',
  open: () => Promise.resolve({ draw, feed, close: () => Promise.resolve() }),
}
