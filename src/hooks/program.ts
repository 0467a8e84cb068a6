import { isDeepStrictEqual } from 'node:util'

import type { ActionId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { visible } from '../base/visible.ts'
import { judgeProcess } from '../processes/identity.ts'
import { createRuntime } from '../runtime.ts'
import type { Runtime } from '../runtime.ts'
import { sessionKey } from '../sessions/session.ts'
import { NO_ANSWER } from './answer.ts'
import type { HookAnswer } from './answer.ts'
import { Unreadable, fieldsOf, sessionIn } from './event.ts'
import { hear } from './hear.ts'
import { replaySpool } from './spool.ts'
import { identityOf, readTold } from './told.ts'
import type { Told } from './told.ts'
import { untilDecided, untilWoken } from './wait.ts'

export interface Place {
  readonly home: string
  readonly store?: string | undefined
}

async function withStore<T>({ home, store }: Place, work: (runtime: Runtime) => Promise<T>): Promise<T> {
  const environment = Object.fromEntries(Object.entries(process.env).filter(isSet))
  const runtime = await createRuntime({ home, environment, ...(store === undefined ? {} : { store }) })
  try {
    return await work(runtime)
  } finally {
    await runtime.close()
  }
}

const isSet = (entry: [string, string | undefined]): entry is [string, string] => entry[1] !== undefined

function understood(record: unknown): Told {
  const told = readTold(record)
  if (told instanceof Unreadable) throw new Error(told.why)
  return told
}

/** What bin/hook.cjs does where there is no daemon: what was left in the spool first, then this event. */
export function hearDirectly(place: Place, record: unknown): Promise<HookAnswer> {
  const told = understood(record)
  return withStore(place, async (runtime) => {
    const warn = (text: string) => void process.stderr.write(`holdfast: ${visible(text)}\n`)
    await replaySpool({ ...runtime, warn }, LIMITS.spoolTogether)
    return hear(runtime, told)
  })
}

/** Waits for a person's answer, while the dialog of the client is open; then the same event gets it, or nothing. */
export function hearDecided(place: Place, record: unknown, hold: NonNullable<HookAnswer['hold']>): Promise<HookAnswer> {
  const told = understood(record)
  return withStore(place, async (runtime) => {
    const outcome = await untilDecided(runtime, hold.approvalId, hold.actionId as ActionId)
    return outcome === 'over' ? NO_ANSWER : hear(runtime, told)
  })
}

/** Waits beside an idle session for its inbox. True: it is to be woken, and by nobody else. */
export async function waitBeside(place: Place, record: unknown): Promise<boolean> {
  const told = understood(record)
  const fields = fieldsOf(told.input)
  const sessionId = fields instanceof Unreadable ? undefined : sessionIn(fields)
  const client = identityOf(told.process)
  // Without its process nobody would know when to go.
  if (sessionId === undefined || client === undefined) return false
  const isAlive = () => judgeProcess(client) === 'alive'
  const isOurs = (process: unknown) => isDeepStrictEqual(process, client)
  return withStore(place, (runtime) => untilWoken(runtime, sessionKey(told.client, sessionId), isAlive, isOurs))
}
