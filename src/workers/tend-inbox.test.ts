import { expect, test } from 'vitest'

import { HoldfastError } from '../base/errors.ts'
import { doEach } from './tend-inbox.ts'

const fails = (what: string, error: Error) => ({ what, work: () => Promise.reject(error) })

test('what failed is said once for each cause, and the others are done; a store that was closed is nothing to tell', async () => {
  const [told, done]: [string[], string[]] = [[], []]
  const jobs = [
    fails('one', new HoldfastError('store/closed', 'this store was closed')),
    fails('two', new Error('no room')),
    fails('three', new Error('no room')),
    { what: 'four', work: async () => done.push('four') },
  ]
  await doEach(jobs, (message) => told.push(message))
  expect([told, done]).toEqual([['two, three will be tried again: no room'], ['four']])
})
