import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { judgeProcess } from '../../src/processes/identity.ts'
import { startCommand } from '../../src/processes/start-command.ts'
import { begin, codeCache, endOf, freshFolder, sh, specOf, until, within } from './support.ts'

/** Longer than a cancelled one goes on trying. */
const LONG_MS = 3_000

/** Nobody can write a file where a folder is. */
async function withoutRoomForItsEnd() {
  const heard = Promise.withResolvers<string>()
  const gate = `${freshFolder()}.gate`
  const spec = specOf(sh('until [ -e "$1" ]; do sleep 0.02; done; echo paid', gate))
  const { folder, command } = await begin(spec, { onTrouble: heard.resolve })
  const inTheWay = join(folder, 'end.json')
  mkdirSync(join(inTheWay, 'something'), { recursive: true })
  mkdirSync(gate)
  const sentence = await within(10_000, heard.promise, 'nothing was said')
  return { command, sentence, makeRoom: () => rmSync(inTheWay, { recursive: true }) }
}

test.concurrent('whoever waits for a command whose end cannot be written is told why, and gets the end when it can', async () => {
  const { command, sentence, makeRoom } = await withoutRoomForItsEnd()
  expect(sentence).toMatch(/^the command has ended, and its result cannot be written down \(.*end\.json/)
  makeRoom()
  expect(endOf(await within(15_000, command.ended, 'no end'))).toMatchObject({
    exitCode: 0,
    stdout: { head: 'paid\n' },
  })
})

test.concurrent('once it is cancelled, an end that cannot be written is soon given up', async () => {
  const { command, makeRoom } = await withoutRoomForItsEnd()
  command.ended.catch(() => {})
  command.stop('cancelled')
  await until(() => judgeProcess(command.identity) === 'dead', 20_000, 'its supervisor is gone')
  makeRoom()
})

test.concurrent('a lost lease is no reason to give up an end that cannot be written: its taker wants it [runs/paid-work-kept]', async () => {
  const { command, makeRoom } = await withoutRoomForItsEnd()
  command.stop('lease-lost')
  const began = performance.now()
  await until(() => performance.now() - began > LONG_MS, LONG_MS, 'that long')
  makeRoom()
  expect(endOf(await within(15_000, command.ended, 'no end'))).toMatchObject({
    exitCode: 0,
    stdout: { head: 'paid\n' },
  })
})

test.concurrent('a cancel is heard also when its time was over before', async () => {
  const [folder, heard] = [freshFolder(), Promise.withResolvers<string>()]
  mkdirSync(join(folder, 'end.json', 'something'), { recursive: true })
  const spec = specOf(sh('sleep 60'), { timeoutMs: 100, graceMs: 0 })
  const command = await startCommand(folder, spec, { codeCache, onTrouble: heard.resolve })
  command.ended.catch(() => {})
  await within(10_000, heard.promise, 'nothing was said')
  command.stop('cancelled')
  await until(() => judgeProcess(command.identity) === 'dead', 20_000, 'its supervisor is gone')
})
