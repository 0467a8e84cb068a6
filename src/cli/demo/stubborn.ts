import { check } from './act.ts'
import type { Act } from './act.ts'
import { processesNaming } from './outside.ts'

export interface StubbornFacts {
  readonly runId: string
  /** By the machine's own table of processes. */
  readonly before: number
  readonly sessions: number
  readonly after: number
  readonly state: string
}

/** The shell, the program, and what that left behind. */
const LEAST_PROCESSES = 3
const LEAST_SESSIONS = 2

export const stubborn: Act<StubbornFacts> = {
  name: 'stubborn',
  title: 'A tool that does not want to stop is stopped',

  async play(stage, tell) {
    await stage.up()
    const program = stage.file('stubborn.mjs')
    const runId = await stage.send('runner', 'Run it.')
    await stage.until('the stubborn program has left another one behind', () =>
      processesNaming(program).some(({ command }) => command.endsWith('left-behind')),
    )
    const before = processesNaming(program)
    const sessions = new Set(before.map(({ session }) => session)).size
    const pids = before.map(({ pid }) => pid).join(', ')
    tell(
      `An agent's shell ignores TERM, and its grandchild has called setsid: processes ${pids}, ${sessions} sessions.`,
    )
    tell(`holdfast runs cancel ${runId} (they get a few seconds to end by themselves)`)
    const { state } = await stage.json<{ readonly state: string }>('runs', 'cancel', runId)
    const after = processesNaming(program).length
    tell(`The run is ${state}; of its processes ${after === 0 ? 'none is' : `${after} are`} left.`)
    return { runId, before: before.length, sessions, after, state }
  },

  judge: ({ before, sessions, after, state }) => [
    check(
      'it had several processes, in more than one session',
      before >= LEAST_PROCESSES && sessions >= LEAST_SESSIONS,
      `${before} processes, ${sessions} sessions`,
    ),
    check('the run is cancelled', state === 'cancelled', state),
    check('when that was said, no process of it was left', after === 0, after),
  ],
}
