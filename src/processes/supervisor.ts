import type { ChildProcess } from 'node:child_process'
import { closeSync, existsSync } from 'node:fs'
import { sleep, systemClock as clock } from '../base/clock.ts'
import { formatDuration } from '../base/duration.ts'
import { describeError } from '../base/errors.ts'
import { errorCode } from '../base/files.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { StreamSealer, withoutHalves } from '../secrets/stream.ts'
import { claimOwner, readSpec, spillPath, writeCommand, writeEnd, writeStarting } from './attempt-folder.ts'
import { planCgroup } from './cgroup.ts'
import type { CommandEnd, OutputText, StopReason, StoredSpec, StreamName } from './command.ts'
import { leaveNoDumps } from './crash-dumps.ts'
import { takeHandover, tellTrouble, toldSecrets } from './handover.ts'
import { processIdentity } from './identity.ts'
import { openEnclosure, type Enclosure, type Launched } from './launch.ts'
import { feedTo, noFeed, type LiveFeed } from './live-feed.ts'
import { OutputEnds } from './output-ends.ts'
import { drain, feedInput, openOutputPipes, type OutputPipes } from './output-pipe.ts'
import { MARK_VARIABLE } from './process-table.ts'
import { resolveProgram } from './resolve-program.ts'
import { Spill } from './spill.ts'
import { askToEnd, commandProcesses, killAll } from './trail.ts'

// A survivor that holds the pipe, or a reader that does not read, delays the end by no more than this (claim R2).
const LINGER_MS = 3_000
// After a stop everything is dead, so what is still on its way comes at once.
const LAST_FLUSH_MS = 500
// A full disk is usually noticed and relieved by somebody; the result waits for it this long.
const END_RETRY_MS = 600_000
// It was cancelled: then nobody waits for what it has said.
const CANCELLED_RETRY_MS = 2_000
// Longer than a disk that is only slow: then whoever waits is told why.
const TELL_AFTER_MS = 1_000

type Stop = AbortController
type Status = Pick<CommandEnd, 'exitCode' | 'signal' | 'spawnError' | 'stopped' | 'survivorsKilled'>

/**
 * Runs the command of an attempt folder and leaves its end there. Resolves at once if the folder has an owner. `cancelled` hears of a cancel
 * also when something else has stopped it before.
 */
export async function supervise(folder: string, stop: Stop, cancelled: AbortSignal): Promise<void> {
  const [stored, handover] = [readSpec(folder), takeHandover()]
  if (stored === undefined || handover === undefined) return
  const spec = { ...stored, argv: handover.argv, env: handover.env }
  const secrets = toldSecrets(handover.secrets)
  leaveNoDumps(handover.dumps)
  const cgroup = planCgroup(spec.mark)
  const cwd = existsSync(spec.cwd) ? spec.cwd : '/'
  // Neither touches the world outside or another supervisor, so they need not wait until the folder is ours. The pipes
  // come first: what makes them should not be born while we are in the command's cgroup.
  const preparing = Promise.all([
    openOutputPipes(folder, handover.input !== undefined),
    openEnclosure(spec.containment, { mark: spec.mark, cwd, cgroup }),
  ])
  if (!(await own(folder, spec, cgroup?.forCommand ?? null))) return (await preparing)[1].discard()
  await writeStarting(folder, clock.now())
  const [pipes, enclosure] = await preparing
  const startedAt = clock.now()
  const output = {
    stdout: watchStream(folder, spec, pipes, 'stdout', secrets),
    stderr: watchStream(folder, spec, pipes, 'stderr', secrets),
  }
  if (spec.leash) void output.stdout.readerGone.then(() => stop.abort('lease-lost'))
  const status = await runInside(enclosure, { folder, spec, stop, pipes, output, startedAt, input: handover.input })
  const [stdout, stderr] = await Promise.all([output.stdout.finish(), output.stderr.finish()])
  const end = { ...status, startedAt, endedAt: clock.now(), stdout, stderr, containment: enclosure.containment }
  await recordEnd(folder, end, secrets, cancelled)
  const patienceMs = status.stopped === undefined ? LINGER_MS : LAST_FLUSH_MS
  await Promise.race([Promise.all([output.stdout.flushed(), output.stderr.flushed()]), sleep(clock, patienceMs)])
}

async function own(folder: string, { mark, fence, place }: StoredSpec, cgroup: string | null): Promise<boolean> {
  const identity = processIdentity(process.pid, place)
  if (identity === undefined) return false
  // A daemon that is older than its programs on disk has written no fence.
  return (await claimOwner(folder, { kind: 'supervisor', identity, mark, cgroup, fence: fence ?? 0 })).won
}

interface Attempt {
  readonly folder: string
  readonly spec: StoredSpec
  readonly stop: Stop
  readonly pipes: OutputPipes
  readonly output: Readonly<Record<StreamName, WatchedStream>>
  readonly startedAt: number
  /** What the command reads, where that is in no file. */
  readonly input: string | undefined
}

async function runInside(enclosure: Enclosure, attempt: Attempt): Promise<Status> {
  const launched = await launchInside(enclosure, attempt)
  for (const { writeFd } of [attempt.pipes.stdout, attempt.pipes.stderr]) closeSync(writeFd)
  giveInput(attempt)
  if ('exitCode' in launched) {
    enclosure.discard()
    return launched
  }
  const { child, trail } = launched
  const exit = exitOf(child)
  const { folder, startedAt } = attempt
  await writeCommand(folder, { startedAt, trail, containment: enclosure.containment }).catch(() => {})
  const disarm = armTimeout(attempt)
  const stopped = await exitOrStop(exit, attempt)
  disarm()
  for (const stream of Object.values(attempt.output)) stream.stopWaiting()
  if (stopped === undefined) await pipesClosed(attempt)
  else await endGently(launched, exit, stopped.why === 'lease-lost' ? attempt.spec.lostGraceMs : attempt.spec.graceMs)
  const survivorsKilled = await killAll(trail)
  await pipesClosed(attempt)
  for (const stream of Object.values(attempt.output)) stream.abandon()
  return { ...(await exit), ...(stopped === undefined ? {} : { stopped }), survivorsKilled }
}

function giveInput({ pipes, input }: Attempt): void {
  if (pipes.stdin === undefined) return
  closeSync(pipes.stdin.readFd)
  feedInput(pipes.stdin.writeFd, input ?? '')
}

async function launchInside(enclosure: Enclosure, { spec, stop, pipes }: Attempt): Promise<Launched | Status> {
  if (stop.signal.aborted) return unstarted({ why: stop.signal.reason as StopReason, afterMs: 0 })
  const program = resolveProgram(spec.argv[0], { cwd: spec.cwd, path: spec.env.PATH })
  if (!existsSync(spec.cwd)) return refused(126, 'ENOENT', `no such folder: ${spec.cwd}`)
  if (program.kind === 'refused') return refused(program.exitCode, program.code, program.message)
  try {
    return await enclosure.launch({
      program: program.path,
      args: spec.argv.slice(1),
      cwd: spec.cwd,
      env: { ...spec.env, [MARK_VARIABLE]: process.env[MARK_VARIABLE] ?? spec.mark },
      stdio: [pipes.stdin?.readFd ?? 'inherit', pipes.stdout.writeFd, pipes.stderr.writeFd],
    })
  } catch (error) {
    const code = errorCode(error) ?? 'ENOTSUP'
    const why = error instanceof Error ? error.message : code
    return refused(isMissing(error) ? 127 : 126, code, `cannot be started: ${spec.argv[0]} (${why})`)
  }
}

const isMissing = (error: unknown) =>
  errorCode(error) === 'ENOENT' && String((error as NodeJS.ErrnoException).syscall).startsWith('spawn')

const refused = (exitCode: number, code: string, message: string): Status => ({
  exitCode,
  signal: null,
  spawnError: { code, message },
  survivorsKilled: 0,
})

const unstarted = (stopped: NonNullable<CommandEnd['stopped']>): Status => ({
  exitCode: null,
  signal: null,
  stopped,
  survivorsKilled: 0,
})

type Exit = Pick<CommandEnd, 'exitCode' | 'signal'>

function exitOf(child: ChildProcess): Promise<Exit> {
  const { exitCode, signalCode: signal } = child
  if (exitCode !== null || signal !== null) return Promise.resolve({ exitCode, signal })
  return new Promise((resolve) => child.once('exit', (code, killer) => resolve({ exitCode: code, signal: killer })))
}

/** Undefined when the command ended by itself first: a stop that comes later only shortens the wait for its pipes. */
async function exitOrStop(exit: Promise<Exit>, attempt: Attempt): Promise<CommandEnd['stopped']> {
  const began = clock.monotonicMs()
  const { stop, spec } = attempt
  const how = await Promise.race([exit.then(() => 'exited' as const), aborted(stop.signal)])
  if (how === 'exited') return undefined
  const afterMs = how === 'timeout' && spec.timeoutMs !== null ? spec.timeoutMs : clock.monotonicMs() - began
  return { why: how, afterMs: Math.round(afterMs) }
}

function aborted(signal: AbortSignal): Promise<StopReason> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(signal.reason as StopReason)
    signal.addEventListener('abort', () => resolve(signal.reason as StopReason), { once: true })
  })
}

function armTimeout({ spec, stop }: Attempt): () => void {
  if (spec.timeoutMs === null) return () => {}
  const due = clock.monotonicMs() + spec.timeoutMs
  // One timer holds 24 days at most, so it is set again until the time has really come.
  const arm = (): (() => void) =>
    clock.after(due - clock.monotonicMs(), () => {
      if (clock.monotonicMs() >= due) stop.abort('timeout')
      else disarm = arm()
    })
  let disarm = arm()
  return () => disarm()
}

/** Waits for the streams to end, up to the linger, or up to a stop. */
async function pipesClosed({ output, stop }: Attempt): Promise<void> {
  const closed = Promise.all([output.stdout.closed, output.stderr.closed])
  await Promise.race([closed, stop.signal.aborted ? sleep(clock, LAST_FLUSH_MS) : sleep(clock, LINGER_MS, stop.signal)])
}

async function endGently({ trail }: Launched, exit: Promise<Exit>, graceMs: number): Promise<void> {
  const until = clock.monotonicMs() + graceMs
  askToEnd(trail)
  await Promise.race([exit, sleep(clock, graceMs)])
  for (
    let pause = 5;
    clock.monotonicMs() < until && commandProcesses(trail).length > 0;
    pause = Math.min(pause * 2, 50)
  ) {
    await sleep(clock, Math.min(pause, until - clock.monotonicMs()))
  }
}

interface WatchedStream {
  readonly closed: Promise<void>
  stopWaiting(): void
  abandon(): void
  finish(): Promise<OutputText>
  flushed(): Promise<void>
  readonly readerGone: Promise<void>
}

const LIVE_FD: Record<StreamName, number> = { stdout: 3, stderr: 4 }

function watchStream(
  folder: string,
  spec: StoredSpec,
  pipes: OutputPipes,
  name: StreamName,
  secrets: Secrets | undefined,
): WatchedStream {
  const ends = new OutputEnds(spec.output)
  const sealer = secrets === undefined ? undefined : new StreamSealer(secrets)
  const spill = new Spill(spillPath(folder, name), spec.output.spillBytes)
  const feed: LiveFeed = spec.live[name] ? feedTo(LIVE_FD[name]) : noFeed
  const draining = drain(pipes[name].readFd, (chunk) => {
    ends.keep(chunk)
    // On disk first: what somebody saw live is not lost when we are killed, but for the beginning of what may be a secret.
    const spilled = spill.write(sealer?.write(chunk) ?? chunk)
    return spilled === undefined ? feed.write(chunk) : spilled.then(() => feed.write(chunk))
  })
  return {
    closed: draining.closed,
    stopWaiting: () => feed.stopWaiting(),
    abandon: () => draining.abandon(),
    flushed: () => feed.finish(),
    readerGone: feed.gone,
    async finish() {
      const texts = secrets === undefined ? ends.texts() : withoutHalves(ends.texts(), secrets)
      if (sealer !== undefined) await spill.write(sealer.end())
      await spill.close({ durable: texts.truncated })
      return { ...texts, totalBytes: ends.totalBytes, ...spill.state }
    },
  }
}

/**
 * A result that was paid for is not given up because the disk is full just now. Whoever waits for it is told so; and once somebody cancels the
 * command it is given up soon: then its taker finds no end, and says that. A lost lease is no reason: what fills the disk may be what kept
 * the lease from being renewed, and the taker wants the result.
 */
async function recordEnd(
  folder: string,
  end: CommandEnd,
  secrets: Secrets | undefined,
  cancelled: AbortSignal,
): Promise<void> {
  const began = clock.monotonicMs()
  let [given, told] = [END_RETRY_MS, false]
  for (let pause = 50; ; pause = Math.min(pause * 2, 5_000)) {
    try {
      return await writeEnd(folder, end, secrets)
    } catch (error) {
      // Whoever removed the folder will not ask for the result.
      if (!existsSync(folder)) return
      const tried = clock.monotonicMs() - began
      if (cancelled.aborted) given = Math.min(given, tried + CANCELLED_RETRY_MS)
      if (tried > given) throw error
      if (!told && tried > TELL_AFTER_MS) {
        tellTrouble(cannotRecord(error))
        told = true
      }
      await sleep(clock, Math.min(pause, given - tried + 1), cancelled.aborted ? undefined : cancelled)
    }
  }
}

const cannotRecord = (error: unknown) =>
  `the command has ended, and its result cannot be written down (${describeError(error)}); make room or mend that disk: it is tried for ${formatDuration(END_RETRY_MS)}`
