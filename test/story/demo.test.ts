import { appendFileSync, existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { temporaryFolder } from '../support/engines.ts'
import { PROGRAM, processesWith, startProcess, supervisorsOf, until } from '../support/holdfast.ts'

interface Played {
  readonly verified: boolean
  readonly acts: readonly {
    readonly name: string
    readonly facts?: Record<string, unknown>
    readonly checks: readonly { readonly what: string; readonly ok: boolean }[]
  }[]
}

/** The demo, with everything that it makes below a folder that this test can look at. */
function startDemo(...args: readonly string[]) {
  const folder = temporaryFolder()
  const demo = startProcess(PROGRAM, ['demo', ...args], { TMPDIR: folder })
  const made = () => readdirSync(folder).filter((name) => name.startsWith('holdfast-demo-'))
  return {
    ...demo,
    ledger: () => join(folder, made()[0] ?? 'not-yet', 'ledger.txt'),
    leftBehind: () => ({ folders: made(), processes: [...processesWith(folder), ...supervisorsOf(folder)] }),
  }
}

const NOTHING = { folders: [], processes: [] }

describe('holdfast demo', () => {
  test('it plays its four acts, says what it saw, and leaves nothing behind', async () => {
    const demo = startDemo('--json')
    const { code, stdout, stderr } = await demo.ended
    const { verified, acts } = JSON.parse(stdout) as Played
    expect({ code, verified, stderr }).toEqual({ code: 0, verified: true, stderr: '' })
    expect(acts.map(({ name }) => name)).toEqual(['killed', 'in-doubt', 'rate-limit', 'stubborn'])
    expect(acts.flatMap(({ checks }) => checks).filter(({ ok }) => !ok)).toEqual([])
    expect(acts[0]?.facts).toMatchObject({
      ledger: ['one', 'two', 'three'],
      settledBy: ['its tool', 'what its process left behind', 'its tool'],
      modelCalls: 2,
    })
    expect(acts[1]?.facts).toMatchObject({ payments: ['power', 'rent'], doubts: ['rent'], rent: { state: 'done' } })
    expect(acts[2]?.facts).toMatchObject({ modelCalls: 2 })
    expect(acts[3]?.facts).toMatchObject({ state: 'cancelled', after: 0 })
    expect(demo.leftBehind()).toEqual(NOTHING)
  })

  test('a ledger that has an entry twice makes it fail, with what was seen', async () => {
    const demo = startDemo()
    await until('the second entry is written', async () => {
      const ledger = demo.ledger()
      return existsSync(ledger) && readFileSync(ledger, 'utf8').includes('\ntwo ') ? true : undefined
    })
    appendFileSync(demo.ledger(), 'one forged\n')
    const { code, stdout } = await demo.ended
    expect(code).toBe(1)
    expect(stdout).toContain('FAIL  each entry is in the ledger once; seen: ["one","two","one","three"]')
    expect(stdout).toMatch(/failed: \d+ checks in 1 of 4 acts/)
    expect(demo.leftBehind()).toEqual(NOTHING)
  })

  test('Ctrl-C in the middle of it ends everything that it started', async () => {
    const demo = startDemo()
    await demo.said('2. Two payments')
    demo.kill('SIGINT')
    const { code, stdout } = await demo.ended
    expect(code).toBe(130)
    expect(stdout).toContain('ok    each entry is in the ledger once')
    expect(demo.leftBehind()).toEqual(NOTHING)
  })
})
