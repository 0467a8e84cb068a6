import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { AgentInstallation } from '../support/agents.ts'
import { temporaryFolder } from '../support/engines.ts'
import { processesWith, until } from '../support/holdfast.ts'

const LEDGER = fileURLToPath(new URL('../support/ledger-tool.mjs', import.meta.url))

/** Waits for somebody to let it go, then writes. */
const GATED = `touch "$2/here"; until [ -e "$2/go" ]; do sleep 0.05; done; exec "$0" "$1" append "$2/ledger.txt"`

test.each([
  ['without a probe', {}],
  ['with a probe that does not see it', { probe: true }],
])(
  'a daemon with another home folder goes on with a write that outlived its daemon, and does not make it again, %s [actions/once] [actions/no-blind-retry]',
  async (_how, { probe }: { probe?: boolean }) => {
    const folder = temporaryFolder()
    const append = {
      effect: 'write',
      description: 'Writes',
      command: ['/bin/sh', '-c', GATED, process.execPath, LEDGER, folder],
      ...(probe === true ? { probe: ['echo', '{"outcome":"not_done"}'] } : {}),
    }
    const replies = [{ toolCalls: [{ tool: 'append', input: { entry: 'a' } }] }, { text: 'done' }]
    const place = new AgentInstallation({ agents: { clerk: { replies, tools: ['append'] } }, tools: { append } })
    const daemon = await place.daemon()
    const { runId } = await place.send('clerk')
    await until('it is under way', () => Promise.resolve(existsSync(join(folder, 'here')) || undefined))
    daemon.kill('SIGKILL')
    await daemon.ended
    await place.beside().daemon()
    await until('the other daemon has it', async () => (await place.whole(runId)).attempts.length === 2 || undefined)
    writeFileSync(join(folder, 'go'), '')
    const { state, actions } = await place.ended(runId)
    await until('nothing runs any more', () =>
      Promise.resolve(processesWith(`HOLDFAST_RUN=${runId}`).length === 0 || undefined),
    )
    const lines = readFileSync(join(folder, 'ledger.txt'), 'utf8').split('\n').filter(Boolean)
    expect({ state, lines, action: actions[0]?.state }).toEqual({
      state: 'succeeded',
      lines: [`a ${actions[0]?.id}`],
      action: 'done',
    })
  },
)
