import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { AgentInstallation } from '../support/agents.ts'
import { temporaryFolder } from '../support/engines.ts'
import { supervisorsOf, until } from '../support/holdfast.ts'

const LEDGER = fileURLToPath(new URL('../support/ledger-tool.mjs', import.meta.url))

/** Its first try hangs, before what it does or after; every other one goes through. */
const HANGS = {
  before: 'if mkdir "$2/here"; then sleep 60; fi; exec "$0" "$1" append "$2/ledger.txt" keyed',
  after: '"$0" "$1" append "$2/ledger.txt" keyed; if mkdir "$2/here"; then sleep 60; fi',
}

/** The supervisor of a tool's command is killed under a daemon that lives. */
async function supervisorKilled(when: keyof typeof HANGS, idempotent: boolean) {
  const folder = temporaryFolder()
  const command = ['/bin/sh', '-c', HANGS[when], process.execPath, LEDGER, folder]
  const append = { effect: 'write', description: 'Writes', command, ...(idempotent ? { idempotent } : {}) }
  const replies = [{ toolCalls: [{ tool: 'append', input: { entry: 'a' } }] }, { text: 'done' }]
  const place = new AgentInstallation({ agents: { clerk: { replies, tools: ['append'] } }, tools: { append } })
  await place.daemon()
  const { runId } = await place.send('clerk')
  await until('it hangs', () => Promise.resolve(existsSync(join(folder, 'here')) || undefined))
  for (const { pid } of supervisorsOf(place.home)) process.kill(pid, 'SIGKILL')
  const { state, actions, attempts } = await place.ended(runId)
  const ledger = join(folder, 'ledger.txt')
  const lines = existsSync(ledger) ? readFileSync(ledger, 'utf8').split('\n').filter(Boolean) : []
  const [action] = actions
  return { state, attempts: attempts.length, action: action?.state, lines, once: [`a ${action?.id}`] }
}

test.each(['before', 'after'] as const)(
  'a tool that honours its key, whose supervisor was killed %s it had acted while the daemon lives, is done once by that key [actions/once] [actions/no-blind-retry]',
  async (when) => {
    const { once, ...seen } = await supervisorKilled(when, true)
    expect(seen).toEqual({ state: 'succeeded', attempts: 1, action: 'done', lines: once })
  },
)

test('one that honours no key is not done again: it is in doubt [actions/no-blind-retry]', async () => {
  const { once, ...seen } = await supervisorKilled('after', false)
  expect(seen).toEqual({ state: 'succeeded', attempts: 1, action: 'in_doubt', lines: once })
})
