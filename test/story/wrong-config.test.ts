import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { temporaryFolder } from '../support/engines.ts'
import { PROGRAM, startProcess } from '../support/holdfast.ts'

/** A home whose configuration somebody has just broken. */
function broken() {
  const home = join(temporaryFolder(), 'home')
  mkdirSync(home)
  writeFileSync(join(home, 'holdfast.config.json'), '{ "agents": { "clerk": { "modell": "scripted:./a.json" } } }')
  return (...args: readonly string[]) => startProcess(PROGRAM, args, { HOLDFAST_HOME: home }).ended
}

describe('a configuration with a mistake', () => {
  test('stops whoever needs its agents, with the line and the remedy', async () => {
    const holdfast = broken()
    const [sent, up] = await Promise.all([holdfast('send', '--agent', 'clerk', 'hi'), holdfast('up')])
    expect([sent.code, up.code]).toEqual([2, 2])
    expect(sent.stderr).toContain('"agents.clerk.modell" is not a setting; did you mean "model"?')
  })

  test('does not stop whoever looks at runs or wants to cancel one', async () => {
    const holdfast = broken()
    const [list, cancel] = await Promise.all([holdfast('runs', 'list', '--json'), holdfast('runs', 'cancel', 'run_1')])
    expect({ code: list.code, stdout: list.stdout.trim() }).toEqual({ code: 0, stdout: '[]' })
    expect(list.stderr).toContain('going on without it')
    expect(cancel.code).toBe(3)
  })

  test('is what the doctor finds, by its name', async () => {
    const { code, stdout } = await broken()('doctor')
    expect(code).toBe(1)
    expect(stdout).toContain('FAIL  configuration: usage/config:')
  })
})
