import { join } from 'node:path'

import { expect, test } from 'vitest'

import type { ThreadId } from '../../src/base/ids.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { messagesIn, messagesOf } from '../../src/threads/message.ts'
import { removeThread } from '../../src/threads/remove.ts'
import { AgentInstallation } from '../support/agents.ts'
import { assertInvariants } from '../support/invariants.ts'
import { smallDisk } from '../support/small-disk.ts'
import { BOSS, message, withBoss } from './support.ts'

test('what cannot be stored is not acknowledged to its producer, a dead letter neither; sent again it is there once [M8] [M15]', async (context) => {
  const disk = smallDisk('6m')
  if (disk === undefined) return context.skip('no small file system can be mounted here')
  const agents = { clerk: { replies: [{ text: 'yes' }] } }
  const place = new AgentInstallation({ agents }, { store: `sqlite:${join(disk.folder, 'holdfast.db')}` })
  const store = await withBoss(place)
  const gone = 'gone' as ThreadId
  await store.apply(acceptMessage, message('first'))
  await place.run(['run', '--thread', gone, '--', 'true'])
  await store.apply(removeThread, gone)
  // Longer than what is left in pages that are there already.
  const long = { body: { summary: 'x'.repeat(20_000) } }
  const [living, dead] = [message('living', long), message('dead', { ...long, threadId: gone })]
  disk.fill()
  await expect(store.apply(acceptMessage, living)).rejects.toMatchObject({
    code: expect.stringContaining('store/') as string,
  })
  await expect(store.apply(acceptMessage, dead)).rejects.toMatchObject({
    code: expect.stringContaining('store/') as string,
  })
  const sent = await place.run(['send', '--agent', 'clerk', '--key', 'k', 'y'.repeat(20_000)])
  expect([sent.code, sent.stdout]).toEqual([1, ''])
  expect(sent.stderr).toContain('holdfast: ')
  disk.free()
  expect((await store.read(messagesOf, BOSS)).map(({ key }) => key)).toEqual(['first'])
  expect(await store.read(messagesIn, ['dead'], 10)).toEqual([])
  for (const each of [living, dead, living, dead]) await store.apply(acceptMessage, each)
  for (let time = 0; time < 2; time += 1) {
    expect((await place.run(['send', '--agent', 'clerk', '--key', 'k', 'y'.repeat(20_000)])).code).toBe(0)
  }
  expect((await store.read(messagesOf, BOSS)).map(({ key }) => key)).toEqual(['first', 'living'])
  expect((await store.read(messagesIn, ['dead'], 10)).map(({ key }) => key)).toEqual(['dead'])
  expect((await store.read(messagesIn, ['pending'], 10)).filter(({ key }) => key === 'k')).toHaveLength(1)
  await assertInvariants(store)
})
