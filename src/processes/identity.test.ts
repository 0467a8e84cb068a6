import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
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
