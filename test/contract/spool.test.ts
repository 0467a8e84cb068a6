import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { systemRandomness as random } from '../../src/base/ids.ts'
import { replaySpool } from '../../src/hooks/spool.ts'
import { sessionStarted } from '../../src/sessions/events.ts'
import { findSession } from '../../src/sessions/session.ts'
import { sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { run, single } from '../../src/store/transition.ts'
import { engines, temporaryFolder } from '../support/engines.ts'

const damaged = single((generation: number) =>
  run(sql`insert into messages (id, thread_id, generation, kind, key, state, body, created_at)
    values (${`msg_${generation}`}, 'claude-bad', ${generation}, 'note', 'k', 'pending', '{}', 1)`),
)

/** A session that cannot be cleared: two messages of one key are in its inbox, which no rule of ours leaves there. */
async function damage(store: Store): Promise<void> {
  await store.apply(sessionStarted, { client: 'claude', sessionId: 'bad' }, 'startup')
  for (const generation of [1, 2]) await store.apply(damaged, generation)
}

function put(folder: string, ordinal: number, sessionId: string, source: string): void {
  const input = JSON.stringify({ session_id: sessionId, hook_event_name: 'SessionStart', source, cwd: '/' })
  const name = `${String(ordinal).padStart(15, '0')}-1-1.json`
  writeFileSync(join(folder, name), JSON.stringify({ client: 'claude', ordinal, input }))
}

describe.each(engines)('the spool on $name', (engine) => {
  test('a record that the database refuses is set aside, and does not hold up the others', async () => {
    const store = await (await engine.database()).open()
    const home = temporaryFolder()
    const spool = join(home, 'spool')
    mkdirSync(spool)
    await damage(store)
    put(spool, 1, 'bad', 'clear')
    put(spool, 2, 'good', 'startup')
    const warnings: string[] = []
    await replaySpool({ store, random, home, warn: (warning) => warnings.push(warning) })
    expect(await store.read(findSession, 'claude:good')).toMatchObject({ state: 'idle' })
    expect(warnings).toEqual([expect.stringContaining('was set aside')])
    expect(readdirSync(spool).filter((name) => name.endsWith('.json'))).toEqual([])
  })
})
