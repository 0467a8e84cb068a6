import type { Clock } from '../base/clock.ts'
import { describeError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { harmlessVariables } from '../base/variables.ts'
import { runBriefly } from '../processes/brief-command.ts'
import { isInForeground, judgeProcess } from '../processes/identity.ts'
import type { ProcessIdentity } from '../processes/identity.ts'
import { typeAtPrompt } from '../processes/tmux.ts'
import type { Session, Wake } from '../sessions/session.ts'
import { claimWake, sessionsToWake } from '../sessions/wake.ts'
import { Lookout } from '../store/lookout.ts'
import type { Store } from '../store/store.ts'
import { doEach } from './tend-inbox.ts'

/** What is typed at the prompt of an idle session. It only begins a turn: the messages come by the client's own hooks. */
export const WAKE_LINE = 'holdfast: messages are waiting'

type Argv = readonly [string, ...string[]]

export interface WakerOptions {
  readonly store: Store
  readonly clock: Clock
  readonly warn: (message: string) => void
  /** The user's own way to wake a session, by its client; `*` for all others. */
  readonly commands: ReadonlyMap<string, Argv>
  readonly env: Readonly<Record<string, string | undefined>>
  /** Our own threads: they get a run. */
  readonly wakeThreads: () => Promise<void>
}

/**
 * Tells idle sessions that something is in their inbox, and gives idle threads of ours a run for what somebody else's process
 * put there. Harmless if it is dropped: the next look finds the same.
 */
export class Waker {
  readonly #options: WakerOptions
  readonly #lookout: Lookout
  readonly #waking = new Map<string, Promise<void>>()
  #stopped = false

  constructor(options: WakerOptions) {
    this.#options = options
    this.#lookout = new Lookout({ ...options, look: () => this.#look() }).listen()
  }

  /** Finds whom to wake, and begins to. Never throws. */
  look(): Promise<void> {
    return this.#lookout.look()
  }

  async #look(): Promise<void> {
    const { store, warn, wakeThreads } = this.#options
    const wakeSessions = async () => {
      for (const session of await store.read(sessionsToWake, LIMITS.page)) this.#begin(session)
    }
    const jobs = [
      { what: 'idle threads', work: wakeThreads },
      { what: 'idle sessions', work: wakeSessions },
    ]
    await doEach(jobs, warn)
  }

  // One that hangs in its terminal keeps nobody else waiting.
  #begin(session: Session): void {
    if (this.#stopped || this.#waking.has(session.id)) return
    const waking = this.#wake(session)
      .catch((error: unknown) => this.#options.warn(`${session.threadId} was not woken: ${describeError(error)}`))
      .finally(() => this.#waking.delete(session.id))
    this.#waking.set(session.id, waking)
  }

  async #wake(session: Session): Promise<void> {
    const way = this.#wayTo(session)
    if (way === undefined || !isWithinReach(session)) return
    const { store, clock, env } = this.#options
    const claim = async () => (await store.apply(claimWake, session.id)) !== undefined
    const variables = harmlessVariables(env)
    if (way.kind === 'tmux') {
      if (!isInForeground(session.process as ProcessIdentity | null)) return
      await typeAtPrompt(way, WAKE_LINE, { clock, timeoutMs: LIMITS.wakeTypingMs, env: variables, mayType: claim })
    } else if (await claim()) {
      await this.#run(way.argv, { ...variables, HOLDFAST_THREAD: session.threadId })
    }
  }

  /** What the user said comes before what the session's terminal happens to be. */
  #wayTo({ client, wake }: Session): Wake | undefined {
    const argv = this.#options.commands.get(client) ?? this.#options.commands.get('*')
    return wake?.kind === 'command' || argv === undefined ? (wake ?? undefined) : { kind: 'command', argv }
  }

  async #run(argv: Argv, env: Readonly<Record<string, string>>): Promise<void> {
    const { clock, warn } = this.#options
    const { code } = await runBriefly(argv, { clock, timeoutMs: LIMITS.wakeMs, env })
    if (code !== 0)
      warn(`the command to wake ${env['HOLDFAST_THREAD']} ${code === null ? 'was ended' : `failed (${code})`}`)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#lookout.stop()
    await Promise.all(this.#waking.values())
  }
}

/** Another machine's terminals are its own daemon's. Where the process is not known, there is only this machine. */
function isWithinReach({ process }: Session): boolean {
  return process === null || judgeProcess(process as ProcessIdentity) === 'alive'
}
