import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'

import type { CommitFate } from '../support/tcp-proxy.ts'
import { freshSchema, proxyBefore } from './support.ts'

async function cutAfter() {
  const url = await freshSchema()
  const proxy = await proxyBefore(url)
  const cut: CommitFate[] = []
  proxy.onCut = (fate) => void cut.push(fate)
  proxy.atCommit = () => 'cut after'
  const client = new pg.Client(proxy.through(url))
  client.on('error', () => {})
  await client.connect()
  onTestFinished(() => client.end().catch(() => {}))
  return { proxy, cut, client }
}

test('a commit that the server answers with a rollback is heard as that, and is not counted as cut', async () => {
  const { cut, client } = await cutAfter()
  await client.query('begin')
  await expect(client.query('select 1 / 0')).rejects.toMatchObject({ code: '22012' })
  expect(await client.query('commit')).toMatchObject({ command: 'ROLLBACK' })
  expect(cut).toEqual([])
})

test('a commit that was done is cut off from its answer, once, and counted when it is', async () => {
  const { cut, client } = await cutAfter()
  await client.query('begin')
  await client.query('select 1')
  await expect(client.query('commit')).rejects.toThrow(/terminated|ECONNRESET/)
  expect(cut).toEqual(['cut after'])
})

test('a connection is busy while somebody waits for its answer, and its process is known', async () => {
  const { proxy, client } = await cutAfter()
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const [link] = proxy.links()
  expect(link).toMatchObject({ isBusy: false, pid: rows[0]!.pid })
  let asked: boolean | undefined
  proxy.atRequest = async (held) => void (asked = held.isBusy)
  await client.query('select 1')
  expect([asked, link!.isBusy]).toEqual([true, false])
})
