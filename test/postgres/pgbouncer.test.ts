import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'

import { storeContract } from '../../src/testing/store-contract.ts'
import { increment } from '../support/counters.ts'
import { Load } from '../support/load.ts'
import { query, withParameters } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { freePort } from '../support/postgres-server.ts'
import type { CommitFate } from '../support/tcp-proxy.ts'
import { expectBalanced } from './load.ts'
import { deep, freshSchema, openedStore, proxyBefore } from './support.ts'

const installed = spawnSync('pgbouncer', ['--version']).status === 0
if (!installed) console.warn('pgbouncer is not installed here, so nothing is tested behind it')

/** Like PostgreSQL it refuses to run as root. */
const OWNER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

describe.skipIf(!installed)('behind pgbouncer in transaction mode', () => {
  let port: number
  let stop = () => {}

  beforeAll(async () => {
    port = await freePort()
    stop = startPooler(port, new URL(inject('postgres')))
    await until('the pooler answers', () =>
      query(pooled(inject('postgres')), 'select 1').then(
        () => true,
        () => undefined,
      ),
    )
  })
  afterAll(() => stop())

  const pooled = (url: string) => {
    const parsed = new URL(withParameters(url, { pgbouncer: 'true' }))
    parsed.port = String(port)
    return parsed.href
  }

  test.each(storeContract)('$title', async ({ check }) => {
    const url = await freshSchema()
    await check(() => openedStore(pooled(url)))
  })

  test('nobody listens, and the commits of others are noticed by looking', async () => {
    const url = await freshSchema()
    const [listening, other] = [await openedStore(pooled(url)), await openedStore(pooled(url))]
    let heard = 0
    listening.onChange(() => (heard += 1))
    await other.apply(increment, 'n')
    await until('it has looked', () => Promise.resolve(heard > 0 ? true : undefined))
    const schema = new URL(url).searchParams.get('schema')
    expect(await query(url, `select 1 from pg_stat_activity where query = 'listen ${schema}_changed'`)).toEqual([])
  })

  test('many callers count right and bring their runs to an end', async () => {
    const url = await freshSchema()
    const stores = [await openedStore(pooled(url)), await openedStore(pooled(url))]
    const load = new Load(stores)
    await load.work(() => load.done >= 200, 8)
    expect(await expectBalanced(load, stores[0]!)).toBeGreaterThanOrEqual(200)
  })

  test('commits that are cut off happen once each here too [durable/acknowledged]', async () => {
    const url = await freshSchema()
    const proxy = await proxyBefore(pooled(url))
    const load = new Load([await openedStore(proxy.through(pooled(url)))])
    // Look-ups commit too, so some must pass.
    const turns: readonly CommitFate[] = ['cut before', 'pass', 'cut after', 'pass', 'pass']
    let commits = 0
    const enough = () => commits >= turns.length * deep(100)
    proxy.atCommit = () => (enough() ? 'pass' : turns[commits++ % turns.length]!)
    await load.work(enough, 8)
    await expectBalanced(load, await openedStore(url))
  })
})

function startPooler(port: number, { hostname, port: behind, username }: URL): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-pgbouncer-'))
  chmodSync(folder, 0o755)
  writeFileSync(join(folder, 'users.txt'), `"${username}" ""\n`, { mode: 0o644 })
  const config = `[databases]
* = host=${hostname} port=${behind}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(folder, 'users.txt')}
pool_mode = transaction
default_pool_size = 8
max_client_conn = 200
`
  writeFileSync(join(folder, 'pgbouncer.ini'), config, { mode: 0o644 })
  const child = spawn('pgbouncer', [join(folder, 'pgbouncer.ini')], { ...OWNER, stdio: 'ignore' })
  return () => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}
