import { writeFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { Installation } from '../support/holdfast.ts'

test('whoever waits for an agent that fails is told why, also when it failed without a word', async () => {
  const installation = new Installation()
  const agents = {
    silent: { command: ['false'] },
    missing: { command: ['no-such-program'] },
    talker: { command: ['sh', '-c', 'echo half an answer; exit 3'] },
  }
  writeFileSync(installation.configuration, JSON.stringify({ agents }))
  const ask = (agent: string) => installation.run(['send', '--agent', agent, '--wait', 'hello'])
  const answers = [await ask('silent'), await ask('missing'), await ask('talker')]
  expect(answers.map(({ code }) => code)).toEqual([1, 1, 1])
  expect(answers.map(({ stdout }) => stdout)).toEqual([
    'failed: exited with status 1\n',
    'failed: not found: no-such-program (install it where the PATH of the daemon leads, or write where it is in "command" of the agent)\n',
    'half an answer\nfailed: exited with status 3\n',
  ])
  for (const { stderr } of answers) expect(stderr).toMatch(/`holdfast runs show run_\w+` has the rest/)
})
