import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, inject, test } from 'vitest'

import { AgentInstallation } from '../support/agents.ts'
import { withParameters } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'

const LEDGER = fileURLToPath(new URL('../support/ledger-tool.mjs', import.meta.url))

/** Writes what it is given, except that entry b waits until somebody lets it go. */
const GATED = `input=$(cat)
case "$input" in *'"b"'*) touch at-b; until [ -e go ]; do sleep 0.05; done;; esac
printf %s "$input" | "$0" "$1" append ledger.txt`

const append = (input: object) => ({ tool: 'append', input })

const REPLIES = [
  {
    toolCalls: [
      append({ entry: 'a', note: 'n' }),
      append({ entry: 'b', note: 'n' }),
      append({ note: 'n', entry: 'a' }),
      { tool: 'refuse', input: {} },
      append({ entry: 'c', note: 'n' }),
    ],
  },
  { toolCalls: [append({ note: 'n', entry: 'b' }), append({ entry: 'a', note: 'another' })] },
  { text: 'done' },
]

const tool = (command: readonly string[]) => ({ effect: 'write', description: 'Writes', command })

function install(store: { readonly store?: string }): AgentInstallation {
  return new AgentInstallation(
    {
      agents: { clerk: { replies: REPLIES, tools: ['append', 'refuse'] } },
      tools: { append: tool(['/bin/sh', '-c', GATED, process.execPath, LEDGER]), refuse: tool(['false']) },
    },
    store,
  )
}

test.each(['sqlite', 'postgres'])(
  'on %s: different writes of a turn all happen, repeats in any order of keys are answered, a failure blocks nobody, though the daemon is killed in the middle [W1] [W2] [W3] [W5] [W7] [actions/once]',
  async (engine) => {
    const schema = `writes_${randomBytes(6).toString('hex')}`
    const place = install(engine === 'sqlite' ? {} : { store: withParameters(inject('postgres'), { schema }) })
    const daemon = await place.daemon()
    const { runId } = await place.send('clerk')
    await until('the second write is under way', () =>
      Promise.resolve(existsSync(join(place.folder, 'at-b')) || undefined),
    )
    daemon.kill('SIGKILL')
    await daemon.ended
    await place.daemon()
    writeFileSync(join(place.folder, 'go'), '')
    const { state, actions, attempts } = await place.ended(runId)
    expect({ state, attempts: attempts.length }).toEqual({ state: 'succeeded', attempts: 2 })
    const lines = readFileSync(join(place.folder, 'ledger.txt'), 'utf8').split('\n').filter(Boolean)
    expect(lines.map((line) => line.split(' ')[0])).toEqual(['a', 'b', 'c', 'a'])
    expect(lines.map((line) => line.split(' ')[1])).toEqual([0, 1, 4, 6].map((index) => actions[index]?.id))
    expect(actions.map((action) => action.state)).toEqual(['done', 'done', 'done', 'failed', 'done', 'done', 'done'])
    expect(actions.map(({ repeatOf }) => actions.findIndex(({ id }) => id === repeatOf))).toEqual([
      -1, -1, 0, -1, -1, 1, -1,
    ])
    expect(new Set(actions.map(({ signature }) => signature)).size).toBe(5)
    for (const { decision } of actions) expect(decision).toMatchObject({ kind: 'allow' })
  },
)
