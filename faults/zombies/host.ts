/**
 * A worker process that serves one store after the other, as it is told line by line on standard input. It says on standard
 * output what it does; at its boundary it stops itself, between two transactions, until somebody lets it go on.
 */
import { flushCompileCache } from 'node:module'
import { readFileSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

import { systemClock } from '../../src/base/clock.ts'
import type { Clock } from '../../src/base/clock.ts'
import { describeError } from '../../src/base/errors.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import { readConfig } from '../../src/config/config.ts'
import { openStore } from '../../src/store/open.ts'
import { openCrew } from '../../src/workers/crew.ts'
import { tendRegularly } from '../../src/workers/tend.ts'
import { POLICY, agentsOf } from './agents.ts'
import { Gate, gated } from './gate.ts'
import type { Boundary } from './gate.ts'

// Now: it is likely to be killed.
flushCompileCache()

/** A clock on the wall that is wrong: by so much, and more so with every second by a share of it. */
export interface WrongClock {
  readonly offsetMs: number
  readonly drift: number
}

export interface Begin {
  readonly do: 'begin'
  readonly url: string
  readonly home: string
  readonly kind: 'daemon' | 'command'
  readonly leaseMs: number
  readonly ledger: string
  readonly boundary?: Boundary
  readonly clock: WrongClock
  /** The file in which the clock stands when it wakes: nobody is told that a clock was set while he slept, he looks at it. */
  readonly clockFile: string
  /** After its stop the store cannot be reached for so long. */
  readonly cutOffMs: number
}

/** What a host is told. */
export type Order = Begin | { readonly do: 'clock'; readonly clock: WrongClock } | { readonly do: 'end' }

const RIGHT: WrongClock = { offsetMs: 0, drift: 0 }
let wrong = { ...RIGHT, since: 0 }
const clock: Clock = {
  ...systemClock,
  now: () => Math.round(systemClock.now() + wrong.offsetMs + wrong.drift * (systemClock.monotonicMs() - wrong.since)),
}
const setClock = (to: WrongClock) => (wrong = { ...to, since: systemClock.monotonicMs() })

/** At once and whole: the next instant it may be stopped. */
const say = (word: string, text = '') => void writeSync(1, `${word} ${text.replaceAll('\n', ' ')}\n`)

function stopHere({ at, when }: Boundary, clockFile: string): void {
  say('stopping', `${when} ${at}`)
  process.kill(process.pid, 'SIGSTOP')
  const before = wrong
  setClock(JSON.parse(readFileSync(clockFile, 'utf8')) as WrongClock)
  const isSet = before.offsetMs !== wrong.offsetMs || before.drift !== wrong.drift
  say('wakes', isSet ? 'to another clock' : 'to the same clock')
}

/** Serves a store until the returned function is called. */
async function serve(order: Begin): Promise<() => Promise<number>> {
  const { url, home, kind, leaseMs, ledger, boundary, clockFile, cutOffMs } = order
  const gate = new Gate(boundary, (reached) => stopHere(reached, clockFile), cutOffMs)
  const store = gated(await openStore(url, { clock, random }), gate)
  const agents = Object.fromEntries(agentsOf({ gate, ledger }).map((agent) => [agent.name, agent]))
  const config = { ...readConfig({ agents, policy: POLICY }, 'host'), path: 'host', folder: home }
  const warn = (message: string) => {
    say('warns', message)
    // By the right clock, which is that of the server too.
    if (message.includes('could not be renewed in time')) say('stops', `${worker.id} ${systemClock.now()}`)
  }
  const env = { PATH: process.env['PATH'] ?? '' }
  const crew = await openCrew({
    store,
    clock,
    random,
    warn,
    live: () => {},
    home,
    config,
    leaseMs,
    backlog: 1_000,
    env,
  })
  const worker = await crew.registerWorker(kind, { concurrency: 4, graceMs: 500 })
  say('worker', worker.id)
  const stopTending = tendRegularly({ clock, leaseMs }, worker)
  await worker.start()
  return async () => {
    stopTending()
    gate.reconnect()
    // Where it stands is told: one that never comes to its end has said how far it got.
    say('drains')
    const { handedOver } = await worker.drain(5_000)
    say('closes', 'its crew')
    await crew.close()
    say('closes', 'its store')
    await store.close()
    return handedOver
  }
}

let serving: Promise<() => Promise<number>> | undefined

async function obey(order: Order): Promise<void> {
  if (order.do === 'clock') return void setClock(order.clock)
  if (order.do === 'begin') {
    setClock(order.clock)
    await (serving = serve(order))
    return say('up')
  }
  const handedOver = await (await serving)?.()
  serving = undefined
  setClock(RIGHT)
  say('ended', String(handedOver ?? 0))
}

process.on('unhandledRejection', (error) => {
  say('broken', describeError(error))
  process.exit(1)
})
createInterface({ input: process.stdin })
  .on(
    'line',
    (line) => void obey(JSON.parse(line) as Order).catch((error: unknown) => say('broken', describeError(error))),
  )
  .on('close', () => process.exit(0))
say('ready')
