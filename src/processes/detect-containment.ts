import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HoldfastError } from '../base/errors.ts'
import { systemRandomness } from '../base/ids.ts'
import { removeRemains } from './attempt-folder.ts'
import { describeEnd, type Containment, type ContainmentChoice } from './command.ts'
import { startCommand } from './start-command.ts'

/** Which containment is in force on this machine, and why no better one: found by running a command in it. */
export async function detectContainment(choice: ContainmentChoice = 'auto'): Promise<Containment> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-'))
  try {
    const argv = ['/bin/sh', '-c', ':'] as const
    const mark = systemRandomness.hex(16)
    const command = await startCommand(folder, {
      argv,
      cwd: '/',
      env: {},
      mark,
      timeoutMs: 10_000,
      containment: choice,
    })
    const outcome = await command.ended
    if (outcome.kind === 'ended' && outcome.end.exitCode === 0) return outcome.end.containment
    const why = outcome.kind === 'ended' ? describeEnd(outcome.end) : outcome.kind
    throw new HoldfastError('processes/no-containment', `no command could be run in containment "${choice}": ${why}`, {
      remedy: 'leave the choice of the containment to Holdfast',
    })
  } finally {
    await removeRemains(folder)
  }
}
