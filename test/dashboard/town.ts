import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/*
 * A configuration with one agent for each thing that can happen, none of which needs a key: what a page shows of a busy day
 * is made by the real daemon.
 */

const program = (source: string) => ['node', '--input-type=module', '-e', source]

const tool = (description: string, source: string, more: object = {}) => ({
  effect: 'write',
  description,
  timeout: '20m',
  command: program(source),
  ...more,
})

const SAY_DONE = `process.stdout.write(JSON.stringify({ ok: true }))`

const TOOLS = {
  lookup: tool('Look something up', `process.stdout.write(JSON.stringify({ found: 3, first: 'pier 7' }))`, {
    effect: 'read',
  }),
  ledger_append: tool('Append one entry', SAY_DONE),
  deploy: tool('Deploy a service', SAY_DONE),
  send_mail: tool('Send a mail', SAY_DONE),
  // Ends as if somebody had pulled the plug: nobody knows whether the card was charged.
  charge_card: tool(
    'Charge a card',
    `process.stderr.write('POST /charges: sent, connection lost before the answer\\n'); process.kill(process.pid, 'SIGKILL')`,
  ),
  run_tests: tool('Run the tests', `process.stderr.write('2 of 148 tests failed\\n'); process.exit(1)`, {
    repeat: 'each',
  }),
  // Says under which number it runs, so that a test can see it gone.
  long_job: tool(
    'Takes for ever',
    `import { writeFileSync } from 'node:fs'; writeFileSync(process.env.HOLDFAST_HOME + '/long-job.pid', String(process.pid)); setTimeout(() => {}, 1_200_000)`,
  ),
}

const usage = (inputTokens: number, outputTokens: number, costMicrousd: number) => ({
  inputTokens,
  outputTokens,
  costMicrousd,
})
const reply = (text: string, more: object = {}) => ({ text, usage: usage(1840, 212, 8_420), ...more })
const calls = (...list: readonly (readonly [string, unknown])[]) => ({
  toolCalls: list.map(([name, input]) => ({ tool: name, input })),
})

/** By agent: what its model says, starting over with each message; the lead's goes on instead. */
const SCRIPTS: Readonly<Record<string, readonly object[]>> = {
  clerk: [
    reply(
      'I will look it up and write it down.',
      calls(['lookup', { query: '{{message}}' }], ['ledger_append', { entry: '{{message}}' }]),
    ),
    reply('Done: it is in the ledger, once.'),
  ],
  deployer: [
    reply(
      'The build is green and the canary has been quiet for an hour. I would like to roll it out.',
      calls([
        'deploy',
        { service: 'checkout', version: '2026.11.3', regions: ['eu-west-1', 'us-east-1'], note: '{{message}}' },
      ]),
    ),
    reply('It is rolled out.'),
  ],
  mailer: [
    reply(
      'The customer asked for the invoice again.',
      calls([
        'send_mail',
        {
          to: 'ada@example.com',
          subject: 'Your invoice \u202egpj.exe',
          body: 'Dear Ada,\n\nhere it is again.\u200b\n\nRegards',
        },
      ]),
    ),
    reply('Sent.'),
  ],
  payer: [
    reply(
      'Charging the card on file for the renewal.',
      calls(['charge_card', { customer: 'cus_7Q2', amount: 4900, currency: 'EUR', note: '{{message}}' }]),
    ),
    reply('The renewal is settled.'),
  ],
  tester: [
    reply('Running the tests.', calls(['run_tests', { suite: 'unit' }])),
    reply('Two tests fail. I stop here and leave the branch as it is.'),
  ],
  slow: [reply('This takes a while.', calls(['long_job', { batch: 12 }])), reply('Finished.')],
  lead: [
    reply(
      'I split this up.',
      calls(
        ['delegate', { agent: 'clerk', task: 'Write down the plan' }],
        ['delegate', { agent: 'deployer', task: 'Roll out checkout' }],
      ),
    ),
    reply('Both are under way; I will hear from them.'),
    reply('Thank you, noted.'),
    reply('Thank you, noted.'),
  ],
  broken: [
    { error: { status: 401, message: 'invalid x-api-key' } },
    { error: { status: 401, message: 'invalid x-api-key' } },
  ],
  limited: [{ error: { status: 429, retryAfter: '1800', message: 'rate limit' } }, reply('At last.')],
  talker: [
    reply('one two three four five six seven eight nine ten '.repeat(12).trim(), { delayMs: 50, streamMs: 20_000 }),
  ],
}

const TOOLS_OF: Readonly<Record<string, readonly string[]>> = {
  clerk: ['lookup', 'ledger_append'],
  deployer: ['deploy'],
  mailer: ['send_mail'],
  payer: ['charge_card'],
  tester: ['run_tests'],
  slow: ['long_job'],
  lead: ['delegate'],
}

const POLICY = [
  { tool: 'ledger_append', decision: 'allow' },
  { tool: 'charge_card', decision: 'allow' },
  { tool: 'run_tests', decision: 'allow' },
  { tool: 'long_job', decision: 'allow' },
  { tool: 'delegate', decision: 'allow' },
  { tool: 'deploy', decision: 'ask' },
]

/** Writes it into a folder and returns the path of the configuration. */
export function writeTown(folder: string, more: object = {}): string {
  mkdirSync(folder, { recursive: true })
  for (const [name, replies] of Object.entries(SCRIPTS)) {
    writeFileSync(join(folder, `${name}.json`), JSON.stringify({ repeat: name !== 'lead', replies }))
  }
  const agents = Object.fromEntries(
    Object.keys(SCRIPTS).map((name) => [name, { model: `scripted:./${name}.json`, tools: TOOLS_OF[name] ?? [] }]),
  )
  const path = join(folder, 'holdfast.config.json')
  writeFileSync(path, JSON.stringify({ agents, tools: TOOLS, policy: POLICY, lease: '2s', ...more }))
  return path
}
