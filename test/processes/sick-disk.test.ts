import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { judgeProcess } from '../../src/processes/identity.ts'
import { begin, endOf, freshFolder, sh, specOf, until, within } from './support.ts'

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

test('whoever waits for a command whose end cannot be written is told why, and gets the end when it can', async () => {
  const { command, sentence, makeRoom } = await withoutRoomForItsEnd()
  expect(sentence).toMatch(/^the command has ended, and its result cannot be written down \(.*end\.json/)
  makeRoom()
  expect(endOf(await within(15_000, command.ended, 'no end'))).toMatchObject({
    exitCode: 0,
    stdout: { head: 'paid\n' },
  })
})

test('once it is to be stopped, an end that cannot be written is soon given up', async () => {
  const { command, makeRoom } = await withoutRoomForItsEnd()
  command.ended.catch(() => {})
  command.stop('cancelled')
  await until(() => judgeProcess(command.identity) === 'dead', 20_000, 'its supervisor is gone')
  makeRoom()
})
