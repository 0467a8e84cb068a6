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

describe('a configuration that merely lies in the folder', () => {
  test('is named, once, where it would have been used, and nowhere else', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'holdfast.config.json'), '{ "agents": {} }')
    const env = { HOLDFAST_HOME: join(folder, 'home'), XDG_CONFIG_HOME: folder }
    const holdfast = (...args: readonly string[]) =>
      startProcess('/bin/sh', ['-c', 'cd "$0" && exec "$@"', folder, PROGRAM, ...args], env).ended
    const remarks = async (...args: readonly string[]) => {
      const { code, stderr } = await holdfast(...args)
      return [
        args.slice(0, 2).join(' '),
        code,
        stderr.split('holdfast.config.json in this folder is not used').length - 1,
      ]
    }
    expect(await remarks('runs', 'list')).toEqual(['runs list', 0, 0])
    const all = [
      remarks('threads', 'list'),
      remarks('status'),
      remarks('mcp-tools', 'list'),
      remarks('schedule', 'list'),
      remarks('policy', 'check'),
      remarks('send', '--agent', 'clerk', 'hi'),
      remarks('schedule', 'add', 'nightly', '--every', '1h', '--agent', 'clerk', 'hi'),
    ]
    expect(await Promise.all(all)).toEqual([
      ['threads list', 0, 0],
      ['status', 0, 0],
      ['mcp-tools list', 0, 0],
      ['schedule list', 0, 0],
      ['policy check', 0, 1],
      ['send --agent', 3, 1],
      ['schedule add', 3, 1],
    ])
  })
})
