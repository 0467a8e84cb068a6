import { HoldfastError } from '../base/errors.ts'
import type { RunId } from '../base/ids.ts'
import { thisUser } from '../base/user.ts'
import { judgeProcess } from '../processes/identity.ts'
import { liveDaemons } from '../runs/worker.ts'
import type { Thread } from '../threads/thread.ts'
import type { Context } from './context.ts'
import { selfThread, threadOrSelf } from './self.ts'

/** Who made it, for the record. */
export const maker = ({ environment }: Context): string => environment.run ?? thisUser()

export interface Owner {
  readonly threadId: Thread['id']
  readonly agent: string
  readonly runId?: RunId
}

/** Who is told what becomes of it: the thread that this is called from, unless somebody is named. */
export async function ownerOf(context: Context, given?: string): Promise<{ readonly owner?: Owner }> {
  const thread = given === undefined ? await ownThread(context) : await threadOrSelf(context, given)
  if (thread === undefined) return {}
  // Of a run, whoever is to be told: what it asks for may reach no more than its own tools.
  const { run } = context.environment
  return { owner: { threadId: thread.id, agent: thread.agent, ...(run === undefined ? {} : { runId: run }) } }
}

const NOBODY = ['usage/no-self', 'not-found/self', 'usage/ambiguous']

/** Undefined: this process belongs to no thread that is known here. What a run starts is never taken for a person. */
export async function ownThread(context: Context): Promise<Thread | undefined> {
  try {
    return await selfThread(context)
  } catch (error) {
    const isPerson = context.environment.run === undefined
    if (isPerson && error instanceof HoldfastError && NOBODY.includes(error.code)) return undefined
    throw error
  }
}

export async function hasDaemon({ runtime }: Context): Promise<boolean> {
  const daemons = await runtime.store.read(liveDaemons, null)
  return daemons.some(({ identity }) => judgeProcess(identity) !== 'dead')
}
