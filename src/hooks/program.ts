import { LIMITS } from '../base/limits.ts'
import { createRuntime } from '../runtime.ts'
import type { HookAnswer } from './answer.ts'
import { Unreadable } from './event.ts'
import { hear } from './hear.ts'
import { replaySpool } from './spool.ts'
import { readTold } from './told.ts'

export interface Place {
  readonly home: string
  readonly store?: string | undefined
}

/** What bin/hook.cjs does where there is no daemon: what was left in the spool first, then this event. */
export async function hearDirectly({ home, store }: Place, record: unknown): Promise<HookAnswer> {
  const told = readTold(record)
  if (told instanceof Unreadable) throw new Error(told.why)
  const runtime = await createRuntime({ home, ...(store === undefined ? {} : { store }) })
  try {
    const warn = (text: string) => void process.stderr.write(`holdfast: ${text}\n`)
    await replaySpool({ ...runtime, warn }, LIMITS.spoolTogether)
    return await hear(runtime, told)
  } finally {
    await runtime.close()
  }
}
