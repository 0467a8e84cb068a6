import { statSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Tool } from '../../src/loop/ports.ts'
import { TOOL_LIMITS } from '../../src/tools/limits.ts'
import { parallelShellTool } from '../../src/tools/parallel-shell.ts'
import { shellTool } from '../../src/tools/shell.ts'
import { errorOf, freshFolder, newContext, place, processesWith, until } from './support.ts'

const shell = shellTool(place)
const parallel = parallelShellTool(place)
const running = (proof: string) => until(() => statSync(proof, { throwIfNoEntry: false }) !== undefined, 10_000, proof)

test.each([
  ['echo out; echo err >&2', { status: 0, stdout: 'out\n', stderr: 'err\n' }],
  ['exit 3', { status: 3, stdout: '', stderr: '' }],
  ['exit 137', { status: 137, stdout: '', stderr: '' }],
  ['kill -KILL $$', { status: null, signal: 'SIGKILL', stdout: '', stderr: '' }],
])('any exit is an answer: %s', async (command, result) => {
  expect(await shell.perform({ command }, newContext())).toEqual({ kind: 'done', result })
})

test('of much output both ends are kept', async () => {
  const outcome = await shell.perform({ command: 'seq 100000' }, newContext())
  const { stdout } = (outcome as { result: { stdout: string } }).result
  expect(stdout).toMatch(/^1\n2\n/)
  expect(stdout).toContain('(the middle of 588895 bytes is left out)')
  expect(stdout).toMatch(/100000\n$/)
})

test('a folder that is not there has failed, and one that is is used', async () => {
  expect(await shell.perform({ command: 'pwd', folder: '/tmp' }, newContext())).toMatchObject({
    result: { stdout: '/tmp\n' },
  })
  const there = shellTool({ ...place, cwd: '/usr' })
  expect(await there.perform({ command: 'pwd', folder: 'bin/..' }, newContext())).toMatchObject({
    result: { stdout: '/usr\n' },
  })
  expect(await shell.perform({ command: 'pwd', folder: '/no/such' }, newContext())).toEqual({
    kind: 'failed',
    error: 'could not be started: no such folder: /no/such',
    unbegun: true,
  })
})

test('a command that never returns ends after half an hour, whatever it asked for [R1]', () => {
  expect(shell.timeoutMs).toBe(30 * 60_000)
  expect(shell.validate({ command: 'x', timeout_seconds: 1_801 })).toEqual({
    error: 'timeout_seconds: must be at most 1800',
  })
  expect(shell.validate({})).toEqual({ error: 'command: is required' })
  expect(parallel.validate({ commands: [] })).toEqual({ error: 'commands: must have at least 1 entries' })
})

test('a timeout says so, with what was printed [R1]', async () => {
  const context = newContext()
  const outcome = await shell.perform({ command: 'echo before; sleep 30 | cat', timeout_seconds: 1 }, context)
  expect(outcome).toEqual({ kind: 'in-doubt', error: 'timed out after 1s; it had printed:\nbefore' })
  expect(processesWith(context.mark)).toEqual([])
})

const calls: readonly [string, Tool, (command: string) => unknown][] = [
  ['shell', shell, (command) => ({ command })],
  ['parallel_shell', parallel, (command) => ({ commands: [command, command] })],
]

describe.each(calls)('%s', (_, tool, inputOf) => {
  test('a cancel ends all of it and is called a cancel [R1] [R3]', async () => {
    const [context, proof] = [newContext(), `${freshFolder()}.ran`]
    const performed = tool.perform(inputOf(`echo before; touch ${proof}; sleep 30 | cat`), context)
    await running(proof)
    context.abort()
    const outcome = await performed
    expect(outcome.kind).toBe('in-doubt')
    expect(errorOf(outcome)).toContain('cancelled; it had printed:\nbefore')
    expect(processesWith(context.key)).toEqual([])
  })

  test('two calls at once are cancelled each by its own signal [R3]', async () => {
    const [first, second, proof] = [newContext(), newContext(), `${freshFolder()}.ran`]
    const input = inputOf(`touch ${proof}.$HOLDFAST_ACTION_KEY; sleep 30 | cat`)
    const [one, two] = [tool.perform(input, first), tool.perform(input, second)]
    await Promise.all([first, second].map(({ key }) => running(`${proof}.${key}`)))
    second.abort()
    expect((await two).kind).toBe('in-doubt')
    expect(processesWith(second.key)).toEqual([])
    await until(() => processesWith(first.key).length > 1, 5_000, 'the other one runs')
    first.abort()
    expect((await one).kind).toBe('in-doubt')
    expect(processesWith(first.key)).toEqual([])
  })
})

test('several commands give their results in order, some at a time', async () => {
  const count = `${freshFolder()}.count`
  const most = TOOL_LIMITS.parallelAtOnce
  // The first waits for another one, for ever if there is only one at a time.
  const met = `until [ -e ${count}.met ]; do [ $(ls ${count} | wc -l) -lt 2 ] || touch ${count}.met; sleep 0.02; done`
  const commands = Array.from(
    { length: 8 },
    (_, n) => `mkdir -p ${count}; touch ${count}/${n}; ${met}; ls ${count} | wc -l; rm ${count}/${n}; exit ${n}`,
  )
  const outcome = await parallel.perform({ commands }, newContext())
  const results = (outcome as { result: { command: string; status: number; stdout: string }[] }).result
  expect(results.map(({ status }) => status)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  expect(results.map(({ command }) => command)).toEqual(commands)
  const seen = results.map(({ stdout }) => Number(stdout))
  expect(Math.max(...seen)).toBeLessThanOrEqual(most)
})

test('one that could not be started does not hide what the others did', async () => {
  const outcome = await parallel.perform({ commands: ['echo a', 'exit 7'] }, newContext())
  expect(outcome).toMatchObject({ kind: 'done', result: [{ stdout: 'a\n' }, { status: 7 }] })
})
