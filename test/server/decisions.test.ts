import { describe, expect, test } from 'vitest'

import { findApproval, pendingApprovals } from '../../src/actions/approval.ts'
import { openDoubts } from '../../src/actions/doubt.ts'
import { thisPlace } from '../../src/processes/identity.ts'
import { engines } from '../support/engines.ts'
import { Stage } from '../support/stage.ts'
import { reread } from '../support/world.ts'
import { get, post, serve } from './support.ts'

interface Listed {
  readonly items: readonly { readonly id: string; readonly [field: string]: unknown }[]
}

describe.each(engines)('decisions over HTTP on $name', (engine) => {
  async function staged() {
    const stage = new Stage(await (await engine.database()).open())
    const { url } = await serve(stage.store)
    return { stage, store: stage.store, api: `${url}/api/v1` }
  }

  /** A run that asked for these writes, and waits. */
  async function waiting(entries: readonly string[]) {
    const { stage, ...world } = await staged()
    stage.policy = []
    stage.replies = [{ text: 'I say.', calls: entries.map((entry) => ['append', { entry }]) }, { text: 'Done.' }]
    const { runId } = await stage.send('go')
    await stage.run(await stage.claim())
    return { stage, ...world, runId: runId! }
  }

  test('what waits is listed with its exact bytes; an answer names them, once [approvals/bound]', async () => {
    const { stage, store, runId, api } = await waiting(['a', 'b'])
    const [first, second] = ((await get(`${api}/approvals`)).body as Listed).items
    expect(first).toMatchObject({ runId, tool: 'append', input: { entry: 'a' }, modelSaid: 'I say.', state: 'pending' })
    const decide = async (id: string, body: unknown) => {
      const { status, body: said } = await post(`${api}/approvals/${id}`, body)
      return [status, (said as { error?: { code: string } }).error?.code]
    }
    const approve = { decision: 'approve', digest: first!['digest'] }
    expect(await decide('apr_nothing', approve)).toEqual([404, 'not-found/approval'])
    expect(await decide(first!.id, { decision: 'approve' })).toEqual([400, 'usage/request'])
    expect(await decide(first!.id, { decision: 'always', digest: 'x' })).toEqual([400, 'usage/request'])
    expect(await decide(first!.id, { decision: 'approve', digest: 'x' })).toEqual([409, 'approvals/changed'])
    expect(await decide(first!.id, approve)).toEqual([200, undefined])
    expect(await decide(first!.id, approve)).toEqual([409, 'approvals/too-late'])
    const deny = { decision: 'deny', digest: second!['digest'], note: 'never' }
    expect(await decide(second!.id, { ...deny, by: '' })).toEqual([400, 'usage/request'])
    expect(await decide(second!.id, { ...deny, by: 'Ann' })).toEqual([200, undefined])
    const who = await Promise.all([first!, second!].map(({ id }) => store.read(findApproval, id)))
    expect(who.map((approval) => [approval?.decidedBy, approval?.decidedVia])).toEqual([
      ['the owner', 'HTTP'],
      // What the request says of itself is recorded as that.
      ['Ann, as the owner says', 'HTTP'],
    ])
    expect(await store.read(pendingApprovals, 10)).toEqual([])
    expect(await reread(store, runId)).toMatchObject({ state: 'queued' })
    await stage.finished(await stage.claim())
    expect(stage.effects).toEqual(['a'])
  })

  test('a call whose tool is not known here is not offered to be changed, and cannot be', async () => {
    const { api } = await waiting(['a'])
    const [{ id, digest }] = ((await get(`${api}/approvals`)).body as { items: [{ id: string; digest: string }] }).items
    expect((await get(`${api}/approvals/${id}`)).body).toMatchObject({ id, editable: false })
    const changed = await post(`${api}/approvals/${id}/edit`, { input: { entry: 'b' }, digest })
    expect(changed).toMatchObject({ status: 409, body: { error: { code: 'approvals/no-tool' } } })
  })

  test('a doubt is listed, and settled by what somebody says', async () => {
    const { stage, store, api } = await staged()
    stage.doubts = 'park'
    stage.perform = () => Promise.reject(new Error('the connection was cut'))
    stage.replies = [{ calls: [['append', { entry: 'c' }]] }, { text: 'So it is.' }]
    await stage.send('go')
    await stage.run(await stage.claim())
    const [doubt] = ((await get(`${api}/doubts`)).body as Listed).items
    expect(doubt).toMatchObject({ input: { entry: 'c' }, seen: 'the connection was cut' })
    // Its tool has said something, and settled nothing.
    expect(doubt).not.toHaveProperty('settledBy')
    const resolve = (body: unknown) => post(`${api}/doubts/${doubt!.id}`, body)
    expect((await resolve({ resolution: 'perhaps' })).status).toBe(400)
    for (const wrong of [
      { resolution: 'happened', deadHost: 'elsewhere' },
      { resolution: 'run-again', deadHost: thisPlace().host },
    ])
      expect(await resolve(wrong)).toMatchObject({ status: 400, body: { error: { code: 'usage/resolve' } } })
    expect(await resolve({ resolution: 'run-again', deadHost: 'elsewhere' })).toMatchObject({
      status: 409,
      body: { error: { code: 'doubts/other-hosts' } },
    })
    const happened = { resolution: 'happened', result: { number: 7 }, why: 'I looked', by: 'Ann' }
    expect(await resolve(happened)).toMatchObject({
      status: 200,
      body: { settledBy: 'Ann, as the owner says: I looked' },
    })
    expect((await resolve({ resolution: 'give-up' })).body).toMatchObject({ error: { code: 'doubts/not-in-doubt' } })
    expect(await store.read(openDoubts, 10)).toEqual([])
    await stage.finished(await stage.claim())
    expect(stage.effects).toEqual([])
  })
})
