import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { killProcess } from '../../src/processes/identity.ts'
import type { Owner } from '../../src/processes/attempt-folder.ts'
import { parallelShellTool } from '../../src/tools/parallel-shell.ts'
import { shellTool } from '../../src/tools/shell.ts'
import {
  errorOf,
  fixture,
  freshFolder,
  Ledger,
  newContext,
  place,
  processesWith,
  script,
  toolOf,
  until,
  within,
  type TryOf,
} from './support.ts'

interface Work {
  readonly kind: 'command' | 'shell' | 'parallel'
  readonly definition?: object
  readonly input: unknown
}

const definitionOf = (ledger: Ledger, more: object = {}) => ({
  effect: 'write' as const,
  description: 'append',
  input: { type: 'object' },
  repeat: 'once' as const,
  command: ledger.verb('append'),
  probe: ledger.verb('probe'),
  idempotent: false,
  timeoutMs: 30_000,
  ...more,
})

/** A real worker process that performs the action until somebody kills it. */
async function performElsewhere(context: TryOf, work: Work): Promise<ChildProcess> {
  const { key, threadId, runId, folder, mark, deadline } = context
  const told = JSON.stringify({ ...work, place, context: { key, threadId, runId, folder, mark, deadline } })
  const env = { ...process.env, NODE_COMPILE_CACHE: place.codeCache }
  const worker = fork(fixture('worker.ts'), [told], { env, detached: true })
  await within(10_000, once(worker, 'message'), 'the worker did not start')
  return worker
}

const hasEnded = (context: TryOf) => existsSync(join(context.folder, 'end.json'))

async function kill(worker: ChildProcess): Promise<void> {
  process.kill(-(worker.pid ?? 0), 'SIGKILL')
  if (worker.exitCode === null && worker.signalCode === null) await once(worker, 'exit')
}

function killSupervisor(folder: string): void {
  const owner = JSON.parse(readFileSync(join(folder, 'owner.json'), 'utf8')) as Owner
  if (owner.kind === 'supervisor') killProcess(owner.identity)
}

test('a worker that dies before it has started anything: never started, and it never will be', async () => {
  const [ledger, context] = [new Ledger(), newContext()]
  const tool = toolOf(definitionOf(ledger))
  expect(await tool.recover?.(context)).toEqual({ kind: 'never-started' })
  // The worker was only paused, and wakes up.
  expect(await tool.perform({ entry: 'a' }, context)).toEqual({
    kind: 'failed',
    error: 'it was not started',
    unbegun: true,
  })
  expect(ledger.entries()).toEqual([])
})

test('a worker that dies while the command runs: the next one waits for it and gets its result', async () => {
  const [ledger, context] = [new Ledger(), newContext()]
  const definition = definitionOf(ledger)
  const gate = `${freshFolder()}.gate`
  const worker = await performElsewhere(context, { kind: 'command', definition, input: { entry: 'a', gate } })
  await until(() => ledger.begun(), 10_000, 'the append begins')
  await kill(worker)
  expect(ledger.entries()).toEqual([])
  const recovered = toolOf(definition).recover?.(context)
  writeFileSync(gate, '')
  const outcome = await recovered
  expect(outcome).toEqual({ kind: 'done', result: { appended: 'a' } })
  expect(ledger.entries()).toEqual([`${context.key} a`])
})

test('a worker that dies after the command ended: the result is still there', async () => {
  const [ledger, context] = [new Ledger(), newContext()]
  const definition = definitionOf(ledger)
  const worker = await performElsewhere(context, { kind: 'command', definition, input: { entry: 'a' } })
  await until(() => hasEnded(context), 10_000, 'it has ended')
  await kill(worker)
  expect(await toolOf(definition).recover?.(context)).toEqual({ kind: 'done', result: { appended: 'a' } })
  expect(ledger.entries()).toHaveLength(1)
})

test.each([
  ['before its effect', { delayMs: 60_000 }, 'failed', 0],
  ['after its effect', { afterMs: 60_000 }, 'done', 1],
])('worker and supervisor die %s: in doubt, and the probe knows', async (_, waits, answer, effects) => {
  const [ledger, context] = [new Ledger(), newContext()]
  const input = { entry: 'a', ...waits }
  const definition = definitionOf(ledger)
  const worker = await performElsewhere(context, { kind: 'command', definition, input })
  await until(() => (effects === 0 ? ledger.begun() : ledger.entries().length > 0), 10_000, 'the append')
  await kill(worker)
  killSupervisor(context.folder)
  const tool = toolOf(definition)
  const outcome = await tool.recover?.(context)
  expect(outcome?.kind).toBe('in-doubt')
  expect(errorOf(outcome ?? { kind: '' })).toContain('cut off by a crash')
  expect(processesWith(context.mark)).toEqual([])
  expect((await tool.probe?.(input, context))?.kind).toBe(answer)
  expect(ledger.entries()).toHaveLength(effects)
})

test('what is recovered can be cancelled, down to the dead process, and its stop command is run [R3] [R4]', async () => {
  const [context, proof, stopped] = [newContext(), `${freshFolder()}.ran`, `${freshFolder()}.stopped`]
  const definition = {
    ...definitionOf(new Ledger()),
    command: script('touch "$1"; sleep 60 | cat', proof),
    stop: script('cat > "$1"', stopped),
  }
  const worker = await performElsewhere(context, { kind: 'command', definition, input: { host: 'far' } })
  await until(() => existsSync(proof), 10_000, 'it runs')
  await kill(worker)
  const recovered = toolOf(definition).recover?.(context)
  context.abort()
  expect(await recovered).toEqual({ kind: 'in-doubt', error: 'cancelled', over: true })
  expect(processesWith(context.mark)).toEqual([])
  expect(readFileSync(stopped, 'utf8')).toBe('{"host":"far"}')
})

const STEP_MS = process.env['HOLDFAST_DEEP'] === undefined ? 30 : 15

test(
  'a worker killed at any moment: what is said of the action is what the ledger says',
  { timeout: 120_000 },
  async () => {
    const kinds = new Set<string>()
    // How long a start takes depends on the machine: until one was met that had begun.
    for (let delay = 0; delay < 300 || !kinds.has('done'); delay += STEP_MS + delay / 20) {
      const [ledger, context] = [new Ledger(), newContext()]
      const definition = definitionOf(ledger)
      const worker = await performElsewhere(context, { kind: 'command', definition, input: { entry: 'a' } })
      await new Promise((resolve) => setTimeout(resolve, delay))
      await kill(worker)
      const outcome = await toolOf(definition).recover?.(context)
      kinds.add(outcome?.kind ?? '')
      expect(ledger.entries()).toHaveLength(outcome?.kind === 'never-started' ? 0 : 1)
      expect(['never-started', 'done']).toContain(outcome?.kind)
    }
    expect(kinds).toContain('done')
  },
)

test(
  'worker and supervisor killed at any moment: never a false "done" and never a false "never started"',
  { timeout: 120_000 },
  async () => {
    for (let delay = 0; delay < 240; delay += STEP_MS) {
      const [ledger, context] = [new Ledger(), newContext()]
      const definition = definitionOf(ledger)
      const worker = await performElsewhere(context, { kind: 'command', definition, input: { entry: 'a' } })
      await new Promise((resolve) => setTimeout(resolve, delay))
      await kill(worker)
      if (existsSync(join(context.folder, 'owner.json'))) killSupervisor(context.folder)
      const outcome = await toolOf(definition).recover?.(context)
      // A supervisor that found the fence needs a moment to leave; it has nothing to start.
      await until(() => processesWith(context.mark).length === 0, 5_000, 'all are gone')
      if (outcome?.kind === 'never-started') expect(ledger.begun()).toBe(false)
      else expect(['done', 'in-doubt']).toContain(outcome?.kind)
      if (outcome?.kind === 'done') expect(ledger.entries()).toHaveLength(1)
    }
  },
)

test('the shell is recovered with its status', async () => {
  const [context, gate, proof] = [newContext(), `${freshFolder()}.gate`, `${freshFolder()}.ran`]
  const command = `touch ${proof}; until [ -e ${gate} ]; do sleep 0.02; done; echo out; exit 3`
  const worker = await performElsewhere(context, { kind: 'shell', input: { command } })
  await until(() => existsSync(proof), 10_000, 'it runs')
  await kill(worker)
  const recovered = shellTool(place).recover?.(context)
  writeFileSync(gate, '')
  expect(await recovered).toEqual({ kind: 'done', result: { status: 3, stdout: 'out\n', stderr: '' } })
})

test('several commands are recovered together; those not yet started never are', async () => {
  const [context, gate, proof] = [newContext(), `${freshFolder()}.gate`, `${freshFolder()}.ran`]
  const wait = `touch ${proof}.$$; until [ -e ${gate} ]; do sleep 0.02; done; echo out`
  const commands = [...Array.from({ length: 4 }, () => wait), `touch ${proof}.last`]
  const worker = await performElsewhere(context, { kind: 'parallel', input: { commands } })
  await until(
    () => [0, 1, 2, 3].every((part) => existsSync(join(context.folder, `${part}`, 'command.json'))),
    10_000,
    'all',
  )
  await kill(worker)
  const recovered = parallelShellTool(place).recover?.(context)
  writeFileSync(gate, '')
  const outcome = await recovered
  expect(outcome?.kind).toBe('in-doubt')
  expect(errorOf(outcome ?? { kind: '' }).split('\n')).toHaveLength(5)
  expect(errorOf(outcome ?? { kind: '' })).toContain(`touch ${proof}.last: it was not started`)
  expect(existsSync(`${proof}.last`)).toBe(false)
})
