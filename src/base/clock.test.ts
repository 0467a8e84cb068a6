import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { afterThisTurn } from './clock.ts'

test('what is to be done after this turn is done in the order in which it was asked for, once promises have been answered', async () => {
  const heard: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  afterThisTurn(() => heard.push('first'))
  afterThisTurn(() => {
    heard.push('second')
    // Of the next turn.
    afterThisTurn(() => resolve(void heard.push('later')))
  })
  void Promise.resolve().then(() => heard.push('a promise'))
  await promise
  expect(heard).toEqual(['a promise', 'first', 'second', 'later'])
})

test('one that throws is heard of, and keeps no other from its turn', () => {
  const clock = fileURLToPath(new URL('clock.ts', import.meta.url))
  const program = `
    const { afterThisTurn } = await import(${JSON.stringify(clock)})
    process.on('uncaughtException', ({ message }) => console.log(message))
    afterThisTurn(() => console.log('one'))
    afterThisTurn(() => { throw new Error('broken') })
    afterThisTurn(() => console.log('two'))`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  expect(stdout.trim().split('\n')).toEqual(['one', 'broken', 'two'])
})
