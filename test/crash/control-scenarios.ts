import type { ThreadId } from '../../src/base/ids.ts'
import { audited } from '../../src/tokens/act.ts'
import { createToken, revokeToken } from '../../src/tokens/token.ts'
import type { NewToken } from '../../src/tokens/token.ts'
import { reopenThread, stopThread } from '../../src/threads/remove.ts'
import { openThread } from '../../src/threads/thread.ts'
import { scenario } from './scenario.ts'
import type { Scenario } from './scenario.ts'

const TOKEN: NewToken = { id: 'tok_1', kind: 'token', name: 'ci', scopes: ['read'], digest: 'd', by: 'ann' }
const THREAD = 'stopped' as ThreadId
const act = (call: string) => ({ id: 'did_1', call, on: THREAD, by: 'ann', via: 'HTTP', tokenId: 'tok_1' })

/** Tokens, what an operator does, and the record of it. */
export const CONTROL_SCENARIOS: readonly Scenario[] = [
  scenario({ createToken }, 'a new one', () => Promise.resolve([TOKEN])),
  scenario({ createToken }, 'a browser for a while', () =>
    Promise.resolve([{ ...TOKEN, kind: 'browser', expiresInMs: 60_000 }]),
  ),
  scenario({ revokeToken }, 'one that is good', async ({ store }) => {
    await store.apply(createToken, TOKEN)
    return [TOKEN.id, 'bob']
  }),
  scenario({ reopenThread }, 'a stopped thread', async ({ store }) => {
    await store.apply(openThread, THREAD, 'helper', null)
    await store.apply(stopThread, THREAD)
    return [THREAD]
  }),
  scenario({ audited }, 'a thread that is stopped', async ({ store }) => {
    await store.apply(openThread, THREAD, 'helper', null)
    return [act('threads.stop'), stopThread, [THREAD]]
  }),
  scenario({ audited }, 'a token that is not there', () =>
    Promise.resolve([act('tokens.revoke'), revokeToken, ['tok_none', 'ann']]),
  ),
]
