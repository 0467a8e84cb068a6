import { writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { describeEnd } from '../../src/processes/command.ts'
import {
  availableModes,
  begin,
  endOf,
  freshFolder,
  newMark,
  processesWith,
  run,
  seen,
  sh,
  specOf,
  within,
} from './support.ts'

const modes = await availableModes()

describe.each(modes)('in containment %s', (containment) => {
  test('a pipeline ends at once when its time is over [R1] [R2]', async () => {
    const end = await run(specOf(sh('echo before; sleep 30 | cat'), { containment, timeoutMs: 700 }))
    expect(end.endedAt - end.startedAt).toBeLessThan(10_000)
    // Nobody had to be killed, so nobody was waited for.
    expect(end).toMatchObject({
      stopped: { why: 'timeout', afterMs: 700 },
      survivorsKilled: 0,
      stdout: { head: 'before\n' },
    })
    expect(describeEnd(end)).toBe('timed out after 700ms')
  })

  test('a pipeline ends at once when it is cancelled [R1] [R2]', async () => {
    const ready = seen('ready')
    const spec = specOf(sh('echo ready; sleep 30 | cat'), { containment })
    const { command } = await begin(spec, { onStdout: ready.reader })
    await ready.promise
    command.stop('cancelled')
    const end = endOf(await within(5_000, command.ended, 'no end'))
    expect(end.survivorsKilled).toBe(0)
    expect(describeEnd(end)).toBe('cancelled')
    expect(processesWith(spec.mark)).toEqual([])
  })

  test('a lost lease is told apart from a cancel', async () => {
    const ready = seen('ready')
    const { command } = await begin(specOf(sh('echo ready; sleep 30'), { containment }), { onStdout: ready.reader })
    await ready.promise
    command.stop('lease-lost')
    expect(endOf(await command.ended).stopped?.why).toBe('lease-lost')
  })

  test('a command may clean up when asked to end, and its own status is kept', async () => {
    const ready = seen('ready')
    const script = 'trap "sleep 0.2; echo cleaned; exit 7" TERM; echo ready; while :; do sleep 0.05; done'
    const { command } = await begin(specOf(sh(script), { containment }), { onStdout: ready.reader })
    await ready.promise
    command.stop('cancelled')
    const end = endOf(await command.ended)
    expect(end).toMatchObject({ exitCode: 7, stopped: { why: 'cancelled' }, survivorsKilled: 0 })
    expect(end.stdout.head).toContain('cleaned')
  })

  test('a process may clean up in peace after the command itself has ended', async () => {
    const ready = seen('ready')
    const child = 'trap "sleep 0.3 && echo cleaned; exit" TERM; echo ready; while :; do sleep 0.05; done'
    const { command } = await begin(specOf(sh(`(${child}) & wait`), { containment }), { onStdout: ready.reader })
    await ready.promise
    command.stop('cancelled')
    expect(endOf(await command.ended)).toMatchObject({ signal: 'SIGTERM', stdout: { head: 'ready\ncleaned\n' } })
  })

  test('a command that stopped itself can be cancelled', async () => {
    const ready = seen('ready')
    const spec = specOf(sh('echo ready; kill -STOP $$; sleep 60'), { containment })
    const { command } = await begin(spec, { onStdout: ready.reader })
    await ready.promise
    command.stop('cancelled')
    expect(endOf(await command.ended)).toMatchObject({ signal: 'SIGTERM', survivorsKilled: 0 })
  })

  test('a second stop does not start the grace anew, and the first reason stays', async () => {
    const ready = seen('ready')
    const spec = specOf(sh('trap "" TERM; echo ready; while :; do sleep 0.05; done'), { containment, graceMs: 600 })
    const { command } = await begin(spec, { onStdout: ready.reader })
    await ready.promise
    command.stop('cancelled')
    const again = setInterval(() => command.stop('lease-lost'), 100)
    const end = endOf(await within(5_000, command.ended, 'no end'))
    clearInterval(again)
    expect(end.stopped?.why).toBe('cancelled')
    expect(end.survivorsKilled).toBeGreaterThan(0)
  })

  test('a survivor that holds the pipe delays the end by three seconds at most [R2]', async () => {
    const mark = newMark()
    const end = await run(specOf(sh('setsid sleep 60 & echo out'), { containment, mark }))
    const took = end.endedAt - end.startedAt
    expect(took).toBeGreaterThan(2_900)
    expect(took).toBeLessThan(10_000)
    expect(end).toMatchObject({ exitCode: 0, survivorsKilled: 1, stdout: { head: 'out\n' } })
    expect(processesWith(mark)).toEqual([])
  })
})

test('a stop while the supervisor is still starting ends everything as well', async () => {
  for (let delay = 0; delay < 60; delay += 6) {
    const spec = specOf(sh('sleep 30'))
    const { command } = await begin(spec)
    setTimeout(() => command.stop('cancelled'), delay)
    const outcome = await within(5_000, command.ended, 'no end')
    expect(outcome.kind === 'never-started' || endOf(outcome).stopped?.why === 'cancelled').toBe(true)
    expect(processesWith(spec.mark)).toEqual([])
  }
})

test('the signals of a terminal do not reach a command', async () => {
  const ready = seen('ready')
  const gate = `${freshFolder()}.gate`
  const spec = specOf(sh('echo ready; until [ -e "$1" ]; do sleep 0.02; done; echo survived', gate))
  const { command } = await begin(spec, { onStdout: ready.reader })
  await ready.promise
  process.kill(command.identity.pid, 'SIGINT')
  process.kill(command.identity.pid, 'SIGHUP')
  writeFileSync(gate, '')
  expect(endOf(await command.ended)).toMatchObject({ exitCode: 0, stdout: { head: 'ready\nsurvived\n' } })
})
