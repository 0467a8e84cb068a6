/** What the page says of each method, whether it has been run or not: what is real in it, what goes wrong, how much is a deep run. */
import { faultsOf } from '../totals.ts'
import type { Total } from '../totals.ts'

/** A count that a deep run should reach, and what was reached. */
export interface Goal {
  readonly what: string
  readonly goal: number
  readonly seen: (total: Total) => number
}

export interface Described {
  readonly name: string
  readonly heading: string
  readonly real: string
  readonly wrong: string
  /** None: the method is a table of cases, and a deep run is all of it. */
  readonly goals: readonly Goal[]
  /** What its times are of, where they are not from the last fault until everything had come to its end. */
  readonly times?: string
  /** Which harms it would see. */
  readonly sees: readonly Harm[]
  /** Of some of them: since when (UTC). What was run before has not looked for it. */
  readonly later?: Partial<Record<Harm, string>>
  /** What it counts, where that is not what went wrong. */
  readonly counts?: string
  /** Kinds that it counts beside what went wrong: what came of it. */
  readonly beside?: RegExp
}

/** What went wrong, or whatever it counts. */
export function countedBy({ beside }: Described, { faults }: Pick<Total, 'faults'>): number {
  const kinds = Object.entries(faults).filter(([kind]) => beside?.test(kind) !== true)
  return faultsOf({ faults: Object.fromEntries(kinds) })
}

export const HARMS = {
  twice: 'effects that happened twice',
  lost: 'acknowledged messages, results or files that were gone',
  unauthorised: 'effects that nobody had allowed',
  stuck: 'runs that never came to an end',
  unequal: 'answers or public JSON that differ from the model, or between the databases',
  failed: 'runs that failed although nothing kept them from their end',
  overwritten: 'ends that a later one replaced, or a fenced worker that changed something',
  survivor: 'processes that outlived their cancel by more than 5 s',
  crash: 'inputs that crashed, hung or filled the memory of a process, or were refused by a raw error',
  unseen: 'planted bugs that no test saw',
} as const
export type Harm = keyof typeof HARMS

/** Since then the checks of several methods ask for more. */
const STRICTER = '2026-11-16T18:20'

const cases = (what: string, goal: number): Goal => ({ what, goal, seen: (total) => total.cases })
const kinds = (what: string, goal: number, kind: RegExp): Goal => ({
  what,
  goal,
  seen: ({ faults }) =>
    faultsOf({ faults: Object.fromEntries(Object.entries(faults).filter(([name]) => kind.test(name))) }),
})

export const DESCRIBED: readonly Described[] = [
  {
    name: 'simulation',
    heading: 'Simulated worlds',
    real: 'The engine, the workers, the loop and SQLite, in one thread on a simulated clock; the tools and the processes are stand-ins.',
    wrong:
      'Before and after any statement: crash, BUSY, I/O error, committed but reported as failed, a transaction to be repeated, delay, a message delivered twice, a clock that jumps.',
    goals: [{ what: 'runs', goal: 300_000, seen: (total) => total.runs }],
    sees: ['twice', 'lost', 'unauthorised', 'stuck', 'failed', 'overwritten'],
    later: { failed: STRICTER },
  },
  {
    name: 'exhaustive',
    heading: 'Every boundary',
    real: 'The same world as in the simulation, with twelve scenarios that are written down.',
    wrong: 'At each boundary of each scenario each fault that is possible there, of eight, one at a time.',
    goals: [],
    sees: ['twice', 'lost', 'unauthorised', 'stuck', 'failed', 'overwritten'],
    later: { failed: STRICTER },
  },
  {
    name: 'kill',
    heading: 'kill -9',
    real: 'Everything: the daemon, the supervisor, the command line, the hook, their files and their processes.',
    wrong: 'SIGKILL at named points and at random moments, and a second one while it recovers.',
    goals: [{ what: 'kills', goal: 10_000, seen: faultsOf }],
    sees: ['twice', 'lost', 'unauthorised', 'stuck', 'overwritten'],
    later: { unauthorised: STRICTER },
  },
  {
    name: 'power-loss',
    heading: 'Power loss',
    real: 'The writes and syncs that a run makes, recorded; the database and the files, opened again from each disk that could be left. Of a git transaction: its repository, asked by git itself before and after a worker has recovered it.',
    wrong:
      'At many instants of it: unsynced writes all lost, all kept, one of them lost (of more than six, six are drawn), the last one torn; folder entries that were not synced are gone.',
    goals: [{ what: 'states of the disk', goal: 100_000, seen: faultsOf }],
    times: 'the slowest opening of one of its disks',
    sees: ['lost'],
    counts: 'states of a disk',
  },
  {
    name: 'sick-disk',
    heading: 'A sick disk',
    real: 'The store and the files; a small file system and one that is read-only where the machine lets us mount them.',
    wrong: 'EIO, ENOSPC or EMFILE at each single call.',
    goals: [],
    sees: ['twice', 'lost', 'stuck'],
  },
  {
    name: 'postgres',
    heading: 'A sick PostgreSQL',
    real: 'A PostgreSQL server, the driver, the store and the workers; a proxy between them.',
    wrong:
      'The server is killed and started again, its backends are terminated at each statement, the connection is cut before COMMIT, after COMMIT and before its answer, swallowed, delayed or reset; 40001, 40P01 and 55P03 are forced.',
    goals: [
      kinds('restarts of the server', 500, /server/i),
      kinds('terminated backends', 5_000, /^backend terminated at/),
      kinds('commits that were cut', 2_000, /^cut .*commit/i),
    ],
    sees: ['twice', 'lost', 'unauthorised', 'stuck', 'overwritten'],
  },
  {
    name: 'zombies',
    heading: 'Zombies and clocks',
    real: 'Worker processes over one store.',
    wrong:
      'SIGSTOP at a boundary for longer than the lease, a takeover, SIGCONT; the wall clock is an hour or 400 days off, steps back, drifts.',
    goals: [kinds('takeovers from one that was stopped', 2_000, /^taken over while stopped$/)],
    sees: ['twice', 'lost', 'stuck', 'overwritten'],
    beside: /^zombie ended|^taken over|^woke to/,
  },
  {
    name: 'model-based',
    heading: 'Against a model',
    real: 'SQLite and PostgreSQL side by side, behind the same commands: of runs, attempts, messages, actions with their approvals and doubts, and schedules.',
    wrong:
      'Nothing breaks: sequences of commands are drawn, and after each step both databases must answer what a small reference model answers.',
    goals: [cases('sequences', 50_000)],
    sees: ['lost', 'overwritten', 'unequal'],
    counts: 'misfortunes among the commands',
  },
  {
    name: 'hostile-tools',
    heading: 'Hostile tools',
    real: 'The supervisor and the processes of a tool that does not want to end.',
    wrong:
      'Processes that fork again when one of them is killed, double fork and setsid, an ignored TERM, 1 GB of output, a pipe that is held open.',
    goals: [kinds('cancels', 1_000, /^cancelled$/)],
    times: 'from the cancel until the last process was gone',
    sees: ['survivor', 'stuck'],
    beside: /^contained by/,
  },
  {
    name: 'fuzzing',
    heading: 'Hostile input',
    real: 'The HTTP server on a socket; the readers of hook input, arguments, configuration and model replies; the files tool on a real folder.',
    wrong:
      'Broken, partial, huge, wrongly typed and hostile input on six surfaces, made from the routes, the commands and the schemas of the product and cut up by the seed.',
    goals: [{ what: 'inputs on the surface that has least', goal: 100_000, seen: leastSurface }],
    sees: ['crash', 'unauthorised', 'stuck'],
    counts: 'inputs',
  },
  {
    name: 'soak',
    heading: 'Soak',
    real: 'Everything, for a long time and under load.',
    wrong: 'SIGKILL every 5 to 20 seconds; memory, file handles and the log of the database must stay flat.',
    goals: [{ what: 'minutes', goal: 75, seen: (total) => total.seconds / 60 }],
    sees: ['twice', 'lost', 'stuck'],
  },
  {
    name: 'planted',
    heading: 'The tests themselves',
    real: 'The test suite.',
    wrong:
      'A bug is put into the product: no fence, an early acknowledgement, a blind retry, a Host that is trusted. A test must fail.',
    goals: [],
    sees: ['unseen'],
    counts: 'bugs',
  },
]

function leastSurface({ faults }: Total): number {
  return Math.min(...Object.values(faults), ...(Object.keys(faults).length === 0 ? [0] : []))
}
