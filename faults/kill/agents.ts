/** What the agents of a yard are, what they say, and what their tools do. */

const TELL = { doubt: 'tell' } as const

const ofLedger = (tool: string) => ({ model: `scripted:./${tool}.json`, tools: [tool], ...TELL })

export const AGENTS = {
  plain: ofLedger('plain'),
  keyed: ofLedger('keyed'),
  probed: ofLedger('probed'),
  careful: ofLedger('careful'),
  conductor: { model: 'scripted:./conductor.json', tools: ['delegate'], delegates: ['plain'], ...TELL },
} as const
export type AgentName = keyof typeof AGENTS

export const POLICY = [
  { tool: 'careful', decision: 'ask' },
  ...['plain', 'keyed', 'probed', 'delegate'].map((tool) => ({ tool, decision: 'allow' })),
]

export const tools = (script: string, ledger: string) => {
  const tool = (verb: string, more: object = {}) => ({
    effect: 'write',
    description: 'Append one entry',
    input: { type: 'object', properties: { entry: { type: 'string' } }, required: ['entry'] },
    identity: ['entry'],
    command: [script, verb, ledger],
    ...more,
  })
  return {
    plain: tool('append'),
    careful: tool('append'),
    keyed: tool('keyed', { idempotent: true }),
    probed: tool('append', { probe: [script, 'probe', ledger] }),
  }
}

/** What the scripted model says on a thread of this agent, in this order. */
export function replies(agent: string): string {
  const call = (tool: string, input: object) => ({ tool, input })
  const entries = (...names: string[]) => ({ toolCalls: names.map((entry) => call(agent, { entry })) })
  const children = ['wait', 'background'].map((mode) => call('delegate', { agent: 'plain', task: 'write', mode }))
  const [end, more] = [{ text: 'done' }, { text: 'I see.' }]
  if (agent === 'conductor') return JSON.stringify({ replies: [{ toolCalls: children }, end, more, more, more] })
  return JSON.stringify({ replies: [entries('one', 'two'), end, more, more] })
}
