import type { Clock } from '../base/clock.ts'
import { describeError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import type { Store } from '../store/store.ts'
import type { Channel } from './channel.ts'
import { dueNotices, queueNotices, settleNotice, tryNotice } from './notice.ts'
import type { Notice } from './matter.ts'
import type { StoredNotice } from './notice.ts'

export interface NotifierOptions {
  readonly store: Store
  readonly clock: Clock
  readonly warn: (message: string) => void
  readonly channels: readonly Channel[]
  /** Where this daemon's window is, if it has one. */
  readonly window: () => string | undefined
}

/**
 * Tells people outside what needs them. Harmless if it is dropped: what is to be told is stored before it is sent, and the
 * next look finds it. Without a channel nothing is stored and nobody is told; what waits goes on waiting.
 */
export class Notifier {
  readonly #options: NotifierOptions
  readonly #stopListening: () => void
  readonly #stopping = new AbortController()
  #lookedAt = Number.NEGATIVE_INFINITY
  #cancelLater: (() => void) | undefined
  #looking: Promise<void> | undefined

  constructor(options: NotifierOptions) {
    this.#options = options
    this.#stopListening = options.channels.length === 0 ? () => {} : options.store.onChange(() => this.#soon())
  }

  /** After a commit: at once, and for what follows within half a second once more after it. */
  #soon(): void {
    if (this.#stopping.signal.aborted || this.#cancelLater !== undefined) return
    const { clock } = this.#options
    const waitMs = this.#lookedAt + LIMITS.wakeLookMs - clock.monotonicMs()
    if (waitMs <= 0) return void this.look()
    this.#cancelLater = clock.after(waitMs, () => {
      this.#cancelLater = undefined
      void this.look()
    })
  }

  /** Never throws: what failed is tried again. */
  look(): Promise<void> {
    this.#lookedAt = this.#options.clock.monotonicMs()
    return (this.#looking ??= this.#look()
      .catch((error: unknown) => this.#options.warn(`people will be told later: ${describeError(error)}`))
      .finally(() => (this.#looking = undefined)))
  }

  async #look(): Promise<void> {
    const { store, channels } = this.#options
    if (channels.length === 0) return
    const names = channels.map(({ name }) => name)
    while ((await store.apply(queueNotices, names)) === LIMITS.page) continue
    const due = await store.read(dueNotices, LIMITS.page)
    // Side by side by channel: one that hangs keeps no other waiting.
    const byChannel = [...Map.groupBy(due, ({ channel }) => channel).values()]
    await Promise.all(byChannel.map((notices) => this.#sendAll(notices)))
  }

  async #sendAll(notices: readonly StoredNotice[]): Promise<void> {
    for (const notice of notices) if (!this.#stopping.signal.aborted) await this.#send(notice)
  }

  async #send(due: StoredNotice): Promise<void> {
    const { store, warn } = this.#options
    const tried = await store.apply(tryNotice, due)
    if (tried === undefined) return
    const trouble = await this.#deliver(tried).then(() => undefined, describeError)
    // Cut off by our own end: nobody knows, so it is sent again.
    if (trouble !== undefined && this.#stopping.signal.aborted) return
    const settled = await store.apply(settleNotice, tried, trouble)
    if (settled?.state === 'given_up')
      warn(
        `nobody was told by ${settled.channel} that ${settled.body.title}: ${trouble ?? ''}; ${settled.body.command}`,
      )
  }

  async #deliver({ id, channel: name, body: notice }: StoredNotice): Promise<void> {
    const { clock, channels } = this.#options
    const channel = channels.find((each) => each.name === name)
    if (channel === undefined) throw new Error('there is no such channel in the configuration any more')
    const late = new AbortController()
    const disarm = clock.after(LIMITS.noticeMs, () => late.abort(new Error('it took too long')))
    const link = this.#linkTo(notice)
    try {
      const message = { id, notice, ...(link === undefined ? {} : { link }) }
      await channel.send(message, AbortSignal.any([late.signal, this.#stopping.signal]))
    } finally {
      disarm()
    }
  }

  #linkTo(notice: Notice): string | undefined {
    const url = this.#options.window()
    return url === undefined ? undefined : `${url}${placeOf(notice)}`
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#stopListening()
    this.#cancelLater?.()
    await this.#looking
  }
}

/** The place in the dashboard where it is settled. */
function placeOf({ kind, approvalId, actionId, messageId }: Notice): string {
  if (kind === 'breaker') return '/quotas'
  const [place, id] = {
    approval: ['approvals', approvalId],
    doubt: ['doubts', actionId],
    'dead-letter': ['inbox', messageId],
  }[kind]
  return id === undefined ? '/' : `/${place}/${encodeURIComponent(id)}`
}
