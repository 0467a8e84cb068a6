import { HoldfastError } from '../base/errors.ts'
import type { Run } from '../runs/run.ts'
import type { Thread } from '../threads/thread.ts'

/** Who calls: the thread that the client's process belongs to, and its turn. */
export interface Caller {
  readonly thread: Thread
  /** The turn under way, as its hooks or the command that started it tell of it. */
  readonly run?: Run
  /** Who is told what became of it: the parent of the thread, or that of the run around it. */
  readonly parent?: Thread
}

/** What a caller starts belongs to its turn: by that it is stopped with it, and counted. */
export function turnOf({ run, thread }: Caller): Run {
  if (run !== undefined) return run
  throw new HoldfastError('usage/no-turn', `no turn of ${thread.id} is known to be under way`, {
    remedy: 'install the hooks of your client (`holdfast hooks install`), so that its turns are known',
  })
}

export function parentOf({ parent, thread }: Caller): Thread {
  if (parent !== undefined) return parent
  throw new HoldfastError('usage/no-parent', `${thread.id} was started by nobody, so nobody waits for its report`, {
    remedy: 'say it in your answer, or send_message to a thread that you know',
  })
}
