import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { systemRandomness as random } from '../../src/base/ids.ts'
import { corruptRecords, replaySpool, spooledRecords } from '../../src/hooks/spool.ts'
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

  test('what a process of the same number claimed, and died with, is told by the next', async () => {
    const store = await (await engine.database()).open()
    const home = temporaryFolder()
    const spool = join(home, 'spool')
    mkdirSync(spool)
    put(spool, 1, 'earlier', 'startup')
    const [name] = readdirSync(spool)
    renameSync(join(spool, name!), join(spool, `${name}.${process.pid}-1`))
    expect(await replaySpool({ store, random, home, warn: () => undefined })).toBe(1)
    expect(await store.read(findSession, 'claude:earlier')).toMatchObject({ state: 'idle' })
    expect(readdirSync(spool)).toEqual([])
  })

  test('a record that cannot be set aside now waits for the next look, and holds up no other', async () => {
    const store = await (await engine.database()).open()
    const home = temporaryFolder()
    const spool = join(home, 'spool')
    mkdirSync(spool)
    writeFileSync(join(spool, '000000000000001-1-1.json'), 'torn')
    put(spool, 2, 'good', 'startup')
    writeFileSync(join(spool, 'corrupt'), 'in the way')
    const warnings: string[] = []
    const replay = () => replaySpool({ store, random, home, warn: (warning) => warnings.push(warning) })
    expect(await replay()).toBe(1)
    expect(warnings).toEqual([expect.stringContaining('a record of the spool waits on: ')])
    expect(await store.read(findSession, 'claude:good')).toMatchObject({ state: 'idle' })
    expect(await spooledRecords(home)).toBe(1)
    rmSync(join(spool, 'corrupt'))
    expect(await replay()).toBe(0)
    expect(await spooledRecords(home)).toBe(0)
    expect(await corruptRecords(home)).toMatchObject([{ why: 'it is not JSON' }])
  })

  test('of several who look at once each record has one', async () => {
    const store = await (await engine.database()).open()
    const home = temporaryFolder()
    mkdirSync(join(home, 'spool'))
    for (let n = 1; n <= 9; n += 1) put(join(home, 'spool'), n, `s${n}`, 'startup')
    const replays = Array.from({ length: 4 }, () => replaySpool({ store, random, home, warn: () => undefined }))
    expect((await Promise.all(replays)).reduce((sum, each) => sum + each, 0)).toBe(9)
  })
})
