import { expect, test } from 'vitest'

import { describeError } from '../base/errors.ts'
import { parseConfig } from './config.ts'

const coder = (workspace: string) => `{
  "agents": {
    "coder": {
      "command": ["claude", "-p", "{prompt}"],
      "workspace": ${workspace}
    }
  }
}`

const wrong = (workspace: string): string => {
  try {
    parseConfig(coder(workspace), 'c.json')
  } catch (error) {
    return describeError(error)
  }
  throw new Error('nothing was wrong')
}

test('the workspace of an agent is read; without a mode it is a shadow', () => {
  const workspaceOf = (text: string) => parseConfig(coder(text), 'c.json').agents.get('coder')?.workspace
  expect(workspaceOf('{ "root": ".", "check": "npm test" }')).toEqual({
    root: '.',
    mode: 'shadow',
    check: { command: 'npm test' },
  })
  const whole = `{ "root": "../app", "mode": "transaction", "check": { "file": "scripts/check.sh" }, "checkTimeout": "5m",
    "copy": [".env", "./config//local.json"], "link": ["node_modules"], "commits": "keep", "keep": "30d", "largestFile": "2 GB" }`
  expect(workspaceOf(whole)).toEqual({
    root: '../app',
    mode: 'transaction',
    check: { file: 'scripts/check.sh' },
    checkTimeoutMs: 300_000,
    copy: ['.env', 'config/local.json'],
    link: ['node_modules'],
    commits: 'keep',
    keepMs: 30 * 86_400_000,
    largestFile: 2_000_000_000,
  })
})

test('agents with a model have one in the same words', () => {
  const text = '{ "agents": { "a": { "model": "x/y", "workspace": { "root": ".", "mode": "transaction" } } } }'
  expect(parseConfig(text, 'c.json').agents.get('a')?.workspace).toEqual({ root: '.', mode: 'transaction' })
})

test.each([
  ['"."', 'c.json:5:7: "agents.coder.workspace" must be an object', '{ "root": ".", "check": "npm test" }'],
  ['{ "check": "true" }', 'c.json:5:7: "agents.coder.workspace" has no "root"', '"root": "."'],
  ['{ "root": ".", "chek": "true" }', 'c.json:5:35: "agents.coder.workspace.chek" is not a setting', '"check"?'],
  ['{ "root": ".", "mode": "real" }', 'workspace.mode" must be "shadow" or "transaction"', 'known here'],
  ['{ "root": ".", "check": ["npm"] }', 'workspace.check" must be a command line or a file', '"npm test"'],
  ['{ "root": ".", "check": {} }', 'workspace.check" names no file', 'scripts/check.sh'],
  [
    '{ "root": ".", "check": { "file": "/bin/true" } }',
    'check.file" is not a path in the repository',
    'write it from the top',
  ],
  [
    '{ "root": ".", "copy": ["../secrets"] }',
    'workspace.copy[0]" is not a path in the repository',
    'write it from the top',
  ],
  ['{ "root": ".", "link": [".git/config"] }', `workspace.link[0]" is inside of the repository's own folder`, 'leave'],
  ['{ "root": ".", "copy": ["a"], "link": ["./a"] }', 'workspace.link[0]" "a" is copied already', 'leave it out here'],
  ['{ "root": ".", "checkTimeout": "5m" }', 'checkTimeout" is for a "check", and there is none', 'write one'],
  ['{ "root": ".", "check": "true", "checkTimeout": "0s" }', 'checkTimeout" is not a duration', '"30m"'],
  ['{ "root": ".", "keep": 14 }', 'workspace.keep" must be a duration in quotes', 'write it as'],
  ['{ "root": ".", "largestFile": 5 }', 'workspace.largestFile" must be a size in quotes', '"500MB"'],
  ['{ "root": ".", "commits": "all" }', 'workspace.commits" must be "squash" or "keep"', 'known here'],
])('%s is refused where it stands, with what to do', (text, what, remedy) => {
  const said = wrong(text)
  expect(said).toContain(what)
  expect(said).toContain(remedy)
})
