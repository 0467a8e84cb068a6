import { describe, test } from 'vitest'

import { storeContract } from '../../src/testing/store-contract.ts'
import { engines } from '../support/engines.ts'

describe.each(engines)('the store contract on $name', (engine) => {
  test.each(storeContract)('$title', async ({ check }) => {
    const database = await engine.database()
    await check(() => database.open())
  })
})
