import { LIMITS } from '../../base/limits.ts'
import type { Event } from '../../events/event.ts'
import { viewEvent } from '../../runs/view.ts'
import { familyEvents } from '../../sessions/tree.ts'
import { isOutputGone } from '../words/broken-output.ts'
import type { Context } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import { jsonText, visible } from '../words/output.ts'
import { threadOrSelf } from '../around/self.ts'
import { nextChange } from '../around/wait.ts'

export interface TailFlags {
  readonly children?: boolean
  readonly after: number
  readonly follow: boolean
}

const PAGE = 1_000

/** What happens to a thread and to those below it, as it happens, until the reader has had enough. */
export async function tail(context: Context, given: string, flags: TailFlags): Promise<number> {
  const { runtime, output } = context
  const { id } = await threadOrSelf(context, given)
  for (let after = flags.after; !isOutputGone();) {
    const changed = nextChange({ clock: runtime.clock, local: context }, LIMITS.changePollMs * 2)
    const { events, seq } = await runtime.store.read(familyEvents, id, flags.children === true, after, PAGE)
    for (const event of events) process.stdout.write(`${output.json ? jsonText(viewEvent(event)) : lineOf(event)}\n`)
    after = seq
    if (events.length === PAGE) changed.forget()
    else if (!flags.follow) return (changed.forget(), EXIT.done)
    await changed.heard
  }
  return EXIT.done
}

const lineOf = ({ seq, at, type, threadId, runId, data }: Event) =>
  visible(
    `${String(seq).padStart(6)}  ${new Date(at).toISOString()}  ${type.padEnd(20)} ${threadId ?? ''} ${runId ?? ''}  ${JSON.stringify(data)}`,
  )
