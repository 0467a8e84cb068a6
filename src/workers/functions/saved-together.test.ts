import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { saveAfterThisTurn } from './saved-together.ts'

test('what is saved after this turn is saved in the order in which it was asked for, once promises have been answered', async () => {
  const heard: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  saveAfterThisTurn(() => heard.push('first'))
  saveAfterThisTurn(() => {
    heard.push('second')
    // Of the next turn.
    saveAfterThisTurn(() => resolve(void heard.push('later')))
  })
  void Promise.resolve().then(() => heard.push('a promise'))
  await promise
  expect(heard).toEqual(['a promise', 'first', 'second', 'later'])
})

test('one that throws is heard of, and keeps no other from its turn', () => {
  const module = fileURLToPath(new URL('saved-together.ts', import.meta.url))
  const program = `
    const { saveAfterThisTurn } = await import(${JSON.stringify(module)})
    process.on('uncaughtException', ({ message }) => console.log(message))
    saveAfterThisTurn(() => console.log('one'))
    saveAfterThisTurn(() => { throw new Error('broken') })
    saveAfterThisTurn(() => console.log('two'))`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  expect(stdout.trim().split('\n')).toEqual(['one', 'broken', 'two'])
})
