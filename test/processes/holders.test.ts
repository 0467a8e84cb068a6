import { writeFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { askToStop } from '../../src/processes/attempt-folder.ts'
import { signalProcess } from '../../src/processes/identity.ts'
import type { Supervised } from '../../src/processes/supervised.ts'
import { takeOver } from '../../src/processes/take-over.ts'
import { begin, endOf, freshFolder, processesWith, seen, sh, specOf, within } from './support.ts'

/** Goes on for a while after it was let go, so that a stop which was heard would be seen. */
const GATED = 'echo ready; until [ -e "$1" ]; do sleep 0.02; done; sleep 0.3; echo finished'

/** A command that the worker with the fence 1 has started, and that goes on until it is let go. */
async function gated() {
  const [gate, ready] = [`${freshFolder()}.gate`, seen('ready')]
  const spec = specOf(sh(GATED, gate), { fence: 1 })
  const { folder, command } = await begin(spec, { onStdout: ready.reader })
  await ready.promise
  const taken = async (fence: number): Promise<Supervised> => {
    const remains = await takeOver(folder, 'a taker', { mark: spec.mark, fence })
    if (remains.kind !== 'alive') throw new Error(remains.kind)
    return remains.command
  }
  const ended = () => within(10_000, command.ended, 'no end').then(endOf)
  return { folder, mark: spec.mark, command, taken, ended, letGo: () => writeFileSync(gate, '') }
}

const FINISHED = { exitCode: 0, stdout: { head: 'ready\nfinished\n' } }

test('a worker that comes back cannot stop the command that another has taken over [runs/fenced]', async () => {
  const { command, taken, ended, letGo } = await gated()
  await taken(2)
  command.stop('lease-lost')
  letGo()
  const end = await ended()
  expect(end).toMatchObject(FINISHED)
  expect(end.stopped).toBeUndefined()
})

test('a stop that was written down before the takeover and whose signal comes after it is not heard [runs/fenced]', async () => {
  const { folder, command, taken, ended, letGo } = await gated()
  askToStop(folder, 1)
  await taken(2)
  signalProcess(command.identity, 'SIGUSR2')
  letGo()
  expect((await ended()).stopped).toBeUndefined()
})

test('a taker that was paused and comes after a newer one takes nothing back [runs/fenced]', async () => {
  const { taken, ended, letGo } = await gated()
  await taken(3)
  const late = await taken(2)
  late.stop('lease-lost')
  letGo()
  expect((await ended()).stopped).toBeUndefined()
})

test('whoever took a command over can stop it when it loses its own lease', async () => {
  const { mark, taken, ended } = await gated()
  const taker = await taken(2)
  taker.stop('lease-lost')
  expect((await ended()).stopped?.why).toBe('lease-lost')
  expect(processesWith(mark)).toEqual([])
})

test('a cancel is final, whoever passes it on', async () => {
  const { command, taken, ended } = await gated()
  await taken(2)
  command.stop('cancelled')
  expect((await ended()).stopped?.why).toBe('cancelled')
})

test('where a stop cannot even be written down its signal counts as that of the first owner', async () => {
  const [free, held] = [await gated(), await gated()]
  await held.taken(2)
  for (const { command } of [free, held]) signalProcess(command.identity, 'SIGUSR2')
  expect((await free.ended()).stopped?.why).toBe('lease-lost')
  held.letGo()
  expect((await held.ended()).stopped).toBeUndefined()
})
