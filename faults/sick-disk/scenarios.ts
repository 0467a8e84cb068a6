import { execFileSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Disguise } from './fault.ts'
import { settle } from './settle.ts'
import type { Ended, Room } from './room.ts'

/** Something that somebody asks for, and what must be true once he was told that it is done. */
export interface Scenario {
  readonly name: string
  /** What is there before; done once, and copied. */
  readonly prepare?: (room: Room) => Promise<void>
  /** It cannot be copied: what was shown to a person, or is to be done, names its folder. */
  readonly isBound?: boolean
  /** It makes databases whose names nobody knows before. */
  readonly isAnywhere?: boolean
  readonly act: (room: Room, disguise?: Disguise) => Promise<Ended>
  /** Told to somebody as done; by default by the exit code. */
  readonly isDone?: (ended: Ended) => boolean
  /** What it says when it was done before already: that is as good. */
  readonly already?: RegExp
  /** What must be in the database afterwards. */
  readonly rows?: string
  /** What must be in the ledger afterwards, once. */
  readonly entry?: string
}

const run =
  (...flags: readonly string[]) =>
  (room: Room, disguise?: Disguise) =>
    room.holdfast(['--json', 'run', '--key', 'k', ...flags, '--', ...room.append('ran')], disguise)

const SESSION = {
  session_id: 's1',
  hook_event_name: 'SessionStart',
  source: 'startup',
  cwd: '/',
  transcript_path: '/nowhere',
}

/** It could not be started, who was to carry it out gave up, or nobody knows how far it came: recorded, and not begun again. */
const FAILED = /"state": "failed"|its run failed \(/

/** How long a daemon may take to do what is there, once it has said something; one that stopped because of its disk is waited for no longer. */
const DAEMON_MS = 8_000
/** One that has said what is wrong, and may try again. */
const TROUBLED_MS = 2_000

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'a run is submitted',
    prepare: opened,
    act: run('--detach'),
    rows: `select 1 from runs where submit_key = 'k'`,
    entry: 'ran',
  },
  {
    name: 'a run is submitted to a new home',
    act: run('--detach'),
    rows: `select 1 from runs where submit_key = 'k'`,
    entry: 'ran',
  },
  {
    name: 'a command is run',
    prepare: opened,
    already: FAILED,
    act: run(),
    rows: `select 1 from runs where submit_key = 'k'`,
    entry: 'ran',
  },
  {
    name: 'a command prints more than a record holds',
    already: FAILED,
    prepare: opened,
    act: (room, disguise) =>
      room.holdfast(
        ['--json', 'run', '--key', 'k', '--', process.execPath, '-e', `process.stdout.write('y'.repeat(200_000))`],
        disguise,
      ),
    rows: `select 1 from runs where submit_key = 'k'`,
  },
  {
    name: 'a hook tells of a session',
    prepare: opened,
    act: (room, disguise) => room.hook(SESSION, disguise),
    isDone: ({ code, stderr }) => code === 0 || stderr.includes('is kept in'),
    rows: `select 1 from sessions where session_id = 's1'`,
  },
  {
    name: 'a message is sent',
    prepare: opened,
    act: (room, disguise) => room.holdfast(['--json', 'send', '--agent', 'clerk', '--key', 'k', 'Do it.'], disguise),
    rows: `select 1 from messages where key = 'k'`,
  },
  {
    name: 'a write is approved',
    isBound: true,
    async prepare(room) {
      await room.holdfast(['--json', 'send', '--agent', 'clerk', '--key', 'k', 'Do it.'])
      await settle(room)
      note(room, 'select id from approvals')
    },
    act: (room, disguise) => room.holdfast(['--json', 'approvals', 'approve', noted(room)], disguise),
    already: /approvals\/(too-late|changed)|is approved already/,
    rows: `select 1 from approvals where state in ('approved', 'consumed')`,
    entry: 'asked',
  },
  {
    name: 'a run is cancelled',
    async prepare(room) {
      await room.holdfast(['--json', 'run', '--detach', '--', 'true'])
      note(room, 'select id from runs')
    },
    act: (room, disguise) => room.holdfast(['--json', 'runs', 'cancel', noted(room)], disguise),
    already: /already-terminal/,
    rows: `select 1 from runs where state = 'cancelled'`,
  },
  {
    name: 'a schedule is added',
    prepare: opened,
    act: (room, disguise) =>
      room.holdfast(
        ['--json', 'schedule', 'add', 'nightly', '--cron', '0 3 * * *', '--tz', 'UTC', '--', 'true'],
        disguise,
      ),
    already: /nightly/,
    rows: `select 1 from schedules where name = 'nightly'`,
  },
  {
    name: 'a backup is made',
    prepare: opened,
    isAnywhere: true,
    act: backUp,
    rows: `select 1 from runs where submit_key = 'before'`,
  },
  {
    name: 'a backup is put back',
    async prepare(room) {
      await opened(room)
      await room.holdfast(['--json', 'backup', copyIn(room)])
    },
    isAnywhere: true,
    act: (room, disguise) => room.holdfast(['--json', 'restore', copyIn(room)], disguise),
    rows: `select 1 from runs where submit_key = 'before'`,
  },
  {
    name: 'a run works in a git transaction',
    already: FAILED,
    prepare: withRepository,
    act: (room, disguise) =>
      run('--workspace', join(room.folder, 'repository'), '--workspace-mode', 'transaction')(room, disguise),
    rows: `select 1 from runs where submit_key = 'k'`,
    entry: 'ran',
  },
  {
    name: 'a daemon takes up what was cut off',
    isBound: true,
    async prepare(room) {
      await room.holdfast(['--json', 'run', '--key', 'k', '--detach', '--', ...room.append('ran')])
    },
    act: (room, disguise) =>
      room.holdfast(['up', '--port', '0'], disguise, (daemon, said) => untilDone(room, daemon, said)),
    rows: `select 1 from runs where submit_key = 'k'`,
    entry: 'ran',
  },
]

/** A database that is there and has something in it. */
async function opened(room: Room): Promise<void> {
  await room.holdfast(['--json', 'run', '--key', 'before', '--', 'true'])
}

/** Which one it is, beside the home folder: what is in there may not be readable when it is asked for. */
const note = (room: Room, which: string) => writeFileSync(join(room.folder, 'noted'), room.ask(which))
const noted = (room: Room) => readFileSync(join(room.folder, 'noted'), 'utf8')

const copyIn = (room: Room) => join(room.folder, 'copy.db')

/** One that was told of as made can be put back. */
async function backUp(room: Room, disguise?: Disguise): Promise<Ended> {
  rmSync(copyIn(room), { force: true })
  const made = await room.holdfast(['--json', 'backup', copyIn(room)], disguise)
  return made.code === 0 ? room.holdfast(['--json', 'restore', copyIn(room)]) : made
}

async function withRepository(room: Room): Promise<void> {
  await opened(room)
  const repository = join(room.folder, 'repository')
  mkdirSync(repository)
  writeFileSync(join(repository, 'file'), 'one\n')
  const git = (...args: readonly string[]) => execFileSync('git', ['-C', repository, ...args], { stdio: 'ignore' })
  git('init', '-q')
  git('add', '.')
  git('-c', 'user.name=Somebody', '-c', 'user.email=somebody@example.com', 'commit', '-qm', 'one')
}

async function untilDone(room: Room, daemon: ChildProcess, said: () => string): Promise<void> {
  let [began, troubledAt] = [Number.MAX_VALUE, Number.MAX_VALUE]
  const isDone = () => {
    const now = performance.now()
    if (said() !== '') began = Math.min(began, now)
    if (troubledAt > now && / [a-z]+\/[a-z-]+: /.test(said())) troubledAt = now
    const isEnded = daemon.exitCode !== null || daemon.signalCode !== null
    const isOver = isEnded || now > began + DAEMON_MS || now > troubledAt + TROUBLED_MS
    return isOver || (existsSync(room.ledger) && said().includes('up:'))
  }
  while (!isDone()) await new Promise((resolve) => setTimeout(resolve, 20))
  daemon.kill('SIGTERM')
}
