import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { askToStop, isToStop, takeHold } from '../../src/processes/attempt-folder.ts'
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

test('a folder that was begun by a version without fences, and a file without a number, keep nobody from stopping it', async () => {
  const { folder, command, ended } = await gated()
  const { fence, ...owner } = JSON.parse(readFileSync(join(folder, 'owner.json'), 'utf8')) as { fence: number }
  expect(fence).toBe(1)
  writeFileSync(join(folder, 'owner.json'), JSON.stringify(owner))
  writeFileSync(join(folder, 'holder-two'), '')
  command.stop('lease-lost')
  expect((await ended()).stopped?.why).toBe('lease-lost')
})

// No file can be opened any more; a name can still be changed.
const WITHOUT_DESCRIPTORS = `
  const { askToStop } = await import(process.argv[1])
  const { openSync } = await import('node:fs')
  try { for (;;) openSync('/dev/null') } catch {}
  askToStop(process.argv[2], 2)
`

test('a taker that can open no file stops its command by renaming what it holds it by, and one that is newer still counts', async () => {
  const folder = freshFolder()
  mkdirSync(folder)
  await takeHold(folder, 2)
  expect(isToStop(folder)).toBe(false)
  const module = join(import.meta.dirname, '../../src/processes/attempt-folder.ts')
  const program = [process.execPath, '--input-type=module', '-e', WITHOUT_DESCRIPTORS, module, folder]
  execFileSync('/bin/sh', ['-c', 'ulimit -n 100; exec "$@"', 'sh', ...program], { stdio: 'inherit' })
  expect(readdirSync(folder)).toEqual(['stop-2'])
  expect(isToStop(folder)).toBe(true)
  await takeHold(folder, 3)
  expect(isToStop(folder)).toBe(false)
})

test('whoever cannot write down that it holds a command adopts it all the same', async () => {
  await expect(takeHold(join(freshFolder(), 'there is no such folder'), 2)).resolves.toBeUndefined()
})
