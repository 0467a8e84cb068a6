import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { rememberBoot } from './remember-boot.ts'
import { judgeFrom, judgeProcess, killProcess, processIdentity, thisPlace } from './identity.ts'

const place = { host: 'here', boot: 'b1', pidNamespace: 'n1' }
const identity = { ...place, pid: 7, startTime: 100 }
const living = { startTime: 100, dead: false }

test.each([
  ['the same process', identity, living, 'alive'],
  ['a number that is free', identity, undefined, 'dead'],
  ['a number that was given to another', identity, { startTime: 101, dead: false }, 'dead'],
  ['a zombie', identity, { startTime: 100, dead: true }, 'dead'],
  ['an earlier boot of this host', { ...identity, boot: 'b0' }, living, 'dead'],
  ['an earlier boot and another namespace', { ...identity, boot: 'b0', pidNamespace: 'n0' }, living, 'dead'],
  ['another host', { ...identity, host: 'there' }, living, 'unreachable'],
  ['another PID namespace', { ...identity, pidNamespace: 'n2' }, living, 'unreachable'],
] as const)('%s is judged rightly', (_, who, found, verdict) => {
  expect(judgeFrom(place, who, found)).toBe(verdict)
})

test('of two machines with the same name and no id neither takes the other for an earlier boot of itself', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-boots-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'boots')
  const named = (boot: string) => ({ host: 'pod-no-machine-id', boot, pidNamespace: 'n1' })
  const judged = (boot: string) => judgeFrom(named('b2'), { ...named(boot), pid: 7, startTime: 100 }, living)
  expect([judged('b1'), judged('elsewhere'), judged('b2')]).toEqual(['unreachable', 'unreachable', 'alive'])
  await rememberBoot(file, named('b1'))
  // Started again: its home folder has seen the one before.
  await rememberBoot(file, named('b2'))
  expect([judged('b1'), judged('elsewhere'), judged('b2')]).toEqual(['dead', 'unreachable', 'alive'])
  await rememberBoot(file, named('b3'))
  await rememberBoot(file, named('b3'))
  expect([judged('b1'), judged('b3'), judged('elsewhere')]).toEqual(['dead', 'dead', 'unreachable'])
})

test('this process knows itself', () => {
  const self = processIdentity()
  expect(self).toMatchObject({ pid: process.pid, ...thisPlace() })
  expect(self === undefined ? 'unknown' : judgeProcess(self)).toBe('alive')
})

test('only the very process is killed, never one that has its number', async () => {
  const child = spawn('/bin/sleep', ['60'])
  await once(child, 'spawn')
  const found = processIdentity(child.pid)
  if (found === undefined) throw new Error('not found')
  expect(killProcess({ ...found, startTime: found.startTime - 1 })).toBe(false)
  expect(killProcess({ ...found, boot: 'another' })).toBe(false)
  expect(judgeProcess(found)).toBe('alive')
  expect(killProcess(found)).toBe(true)
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
  expect(judgeProcess(found)).toBe('dead')
})
