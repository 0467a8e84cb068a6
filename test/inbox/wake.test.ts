import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { describe, expect, onTestFinished, test } from 'vitest'

import type { ThreadId } from '../../src/base/ids.ts'
import { newMessageId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import { processIdentity } from '../../src/processes/identity.ts'
import { listRuns } from '../../src/runs/run.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { sessionStarted, turnBegun, turnStopped } from '../../src/sessions/events.ts'
import type { Heard } from '../../src/sessions/events.ts'
import { eventsAfter } from '../../src/events/event.ts'
import type { Store } from '../../src/store/store.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { WAKE_LINE } from '../../src/workers/wake.ts'
import { until } from '../support/holdfast.ts'
import type { AgentInstallation } from '../support/agents.ts'
import { engines, install, message } from './support.ts'

const CLIENT = fileURLToPath(new URL('./fixtures/client.mjs', import.meta.url))
const OWN = 'claude-s1' as ThreadId

const hasTmux = (() => {
  try {
    execFileSync('tmux', ['-V'])
    return true
  } catch {
    console.log('skipped: tmux is not installed, so nobody can be woken by it (apt-get install tmux)')
    return false
  }
})()

/** A terminal with a client in it, of which only its prompt and what was sent to it are seen. */
class Terminal {
  readonly socket: string
  readonly pane: string
  readonly pid: number
  readonly #log: string

  constructor(folder: string) {
    this.socket = join(folder, 'tmux')
    this.#log = join(folder, 'sent')
    this.tmux('-f', '/dev/null', 'new-session', '-d', '-x', '100', '-y', '30', process.execPath, CLIENT, this.#log)
    onTestFinished(() => void this.tmux('kill-server'))
    const [pane = '', pid = ''] = this.tmux('display-message', '-p', '#{pane_id} #{pane_pid}').trim().split(' ')
    this.pane = pane
    this.pid = Number(pid)
  }

  tmux(...args: readonly string[]): string {
    return execFileSync('tmux', ['-u', '-S', this.socket, ...args], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] },
    })
  }

  type(...keys: readonly string[]): void {
    this.tmux('send-keys', '-t', this.pane, ...keys)
  }

  /** What stands at the prompt, once it is drawn. */
  prompt(): string | undefined {
    return /^❯ (.*)$/mu.exec(this.tmux('capture-pane', '-p', '-t', this.pane))?.[1]?.trim()
  }

  shows = (text: string) =>
    until(`the prompt shows "${text}"`, () => Promise.resolve(this.prompt() === text ? true : undefined))

  sent(): string[] {
    return existsSync(this.#log) ? readFileSync(this.#log, 'utf8').split('\n').filter(Boolean) : []
  }

  hasSent = (count: number) =>
    until(`${count} lines were sent`, () => Promise.resolve(this.sent().length >= count ? this.sent() : undefined))
}

/** Twice as long as whoever looks for somebody to wake needs to look again. */
const aWhile = () => new Promise((resolve) => setTimeout(resolve, 1_200))

const tell = (store: Store, key: string, threadId = OWN) =>
  store.apply(acceptMessage, message(key, { threadId, from: 'child' as ThreadId }))

let ordinal = 0

/** The end of a turn, and of the one that it became if messages were waiting. Returns how many were. */
async function endTurn(store: Store, heard: Heard, turn: string): Promise<number> {
  const stop = (isActive: boolean) =>
    store.apply(turnStopped, heard, {
      turn,
      ordinal: (ordinal += 1),
      isActive,
      isPaused: false,
      deliveryId: random.id(),
    })
  const first = await stop(false)
  if (first.kind === 'stop') return 0
  await stop(true)
  return first.delivery.messages.length
}

async function oneTurn(store: Store, heard: Heard): Promise<number> {
  const turn = `turn-${ordinal}`
  await store.apply(turnBegun, heard, turn)
  return endTurn(store, heard, turn)
}

const wakes = async (place: AgentInstallation) =>
  (await place.json<{ wakes: { total: number; vain: number } }>(['status'])).wakes

describe.skipIf(!hasTmux)('an idle session in a terminal', () => {
  test('is woken by a line at its empty prompt, in under a second, never while busy, never over what is typed [M11] [inbox/busy-parent]', async () => {
    const place = install('sqlite', { lease: '3s' })
    const store = await place.store()
    const terminal = new Terminal(place.folder)
    const heard: Heard = {
      client: 'claude',
      sessionId: 's1',
      process: processIdentity(terminal.pid),
      wake: { kind: 'tmux', socket: terminal.socket, pane: terminal.pane },
    }
    await terminal.shows('Try "fix it"')
    await place.daemon()
    await store.apply(sessionStarted, heard, 'startup')
    const tookMs: number[] = []
    for (let round = 1; round <= 3; round += 1) {
      await tell(store, `round-${round}`)
      const begun = performance.now()
      expect(await terminal.hasSent(round)).toEqual(Array.from({ length: round }, () => WAKE_LINE))
      tookMs.push(Math.round(performance.now() - begun))
      expect(await oneTurn(store, heard)).toBe(1)
    }
    console.log(`woken through tmux after ${tookMs.join(', ')} ms`)
    expect(Math.min(...tookMs)).toBeLessThan(1_000)

    await store.apply(turnBegun, heard, 'busy')
    await tell(store, 'while-busy')
    await aWhile()
    expect([terminal.sent().length, terminal.prompt()]).toEqual([3, 'Try "fix it"'])
    terminal.type('-l', 'half a thought')
    await terminal.shows('half a thought')
    expect(await endTurn(store, heard, 'busy')).toBe(1)
    await tell(store, 'while-typing')
    await aWhile()
    expect([terminal.sent().length, terminal.prompt()]).toEqual([3, 'half a thought'])
    // The person gives up: the next look finds an empty prompt.
    terminal.type('C-u')
    expect((await terminal.hasSent(4)).at(-1)).toBe(WAKE_LINE)
    expect(await oneTurn(store, heard)).toBe(1)
    expect(await wakes(place)).toEqual({ total: 4, vain: 0 })
  })
})

test("the user's own command wakes an idle session, once, and is told whom [M11]", async () => {
  const wake = { claude: ['sh', '-c', 'echo "$HOLDFAST_THREAD" >>"$HOLDFAST_HOME/woken"'] }
  const place = install('sqlite', { wake })
  const store = await place.store()
  await place.daemon()
  const heard: Heard = { client: 'claude', sessionId: 's1', process: processIdentity() }
  await store.apply(sessionStarted, heard, 'startup')
  for (const key of ['a', 'b', 'c']) await tell(store, key)
  const woken = () => (existsSync(join(place.home, 'woken')) ? readFileSync(join(place.home, 'woken'), 'utf8') : '')
  await until('it was woken', () => Promise.resolve(woken() === '' ? undefined : true))
  await aWhile()
  expect(woken()).toBe(`${OWN}\n`)
  expect(await oneTurn(store, heard)).toBe(3)
  expect(await wakes(place)).toEqual({ total: 1, vain: 0 })
})

/** A quarter is quicker. On a busy machine some are slow, whatever we do; whoever only looks from time to time has few quick ones. */
const quartile = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 4)] ?? 0

describe.each(engines)('an idle thread of ours on $engine', ({ engine }) => {
  test('starts its run at once, also for what another process put into its inbox [M11] [inbox/busy-parent]', async () => {
    const replies = Array.from({ length: 30 }, () => ({ text: 'yes' }))
    const place = install(engine, { agents: { clerk: { replies } } })
    await place.daemon()
    const store = await place.store()
    const tookMs: number[] = []
    const { runId, threadId } = await place.send('clerk')
    await place.ended(runId)
    for (let round = 0; round < 10; round += 1) {
      const ids = { messageId: newMessageId(random), runId: newRunId(random) }
      await store.apply(sendMessage, { ...ids, threadId, agent: 'clerk', text: 'go', key: ids.messageId })
      await place.ended(ids.runId)
      const events = (await store.read(eventsAfter, 0, 1_000)).filter((event) => event.threadId === threadId)
      const at = (type: string) => events.findLast((event) => event.type === type)?.at ?? 0
      tookMs.push(at('run.started') - at('message.accepted'))
    }
    console.log(`on ${engine} a message to an idle thread starts its run after ${tookMs.join(', ')} ms`)
    expect(quartile(tookMs)).toBeLessThan(50)
    // As a hook does: it knows nothing of agents.
    const wokenMs: number[] = []
    for (let round = 0; round < 3; round += 1) {
      const before = (await store.read(listRuns, { threadId, limit: 100 })).length
      await tell(store, `from-elsewhere-${round}`, threadId)
      const begun = performance.now()
      const [run] = await until('it has a run for it', async () => {
        const runs = await store.read(listRuns, { threadId, limit: 100 })
        return runs.length > before ? runs : undefined
      })
      wokenMs.push(Math.round(performance.now() - begun))
      await place.ended(run?.id ?? '')
    }
    console.log(`on ${engine} what another process accepted starts a run after ${wokenMs.join(', ')} ms`)
    expect(Math.min(...wokenMs)).toBeLessThan(1_000)
  })
})
