import type { Api } from '../../api/client.ts'
import { LIMITS } from '../../base/limits.ts'
import { isTerminal } from '../../runs/run.ts'
import { isOutputGone } from '../words/broken-output.ts'
import type { Operator } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import { jsonText, visible } from '../words/output.ts'
import type { EventView } from '../words/views.ts'
import { nextChange } from '../around/wait.ts'

export interface EventFlags {
  readonly after: number
  readonly follow?: boolean
}

export async function showEvents(operator: Operator, run: string | undefined, flags: EventFlags): Promise<number> {
  const { api, output } = operator
  if (flags.follow === true) {
    for await (const event of following(operator, run, flags.after)) printLine(output.json, event)
    return EXIT.done
  }
  const found: EventView[] = []
  if (run === undefined && flags.after > 0) await noteForgotten(operator, flags.after)
  for await (const event of recorded(api, run, flags.after)) found.push(event)
  output.result(found, () => (found.length === 0 ? 'no events' : found.map(eventLine).join('\n')))
  return EXIT.done
}

/** A number that is older than what was forgotten: what is missing is said, not passed over. */
async function noteForgotten({ api, output }: Operator, after: number): Promise<void> {
  const { forgottenThrough } = await api.call('events.list', { after, limit: 1 })
  if (forgottenThrough !== undefined) output.note(`events up to ${forgottenThrough} may have been forgotten`)
}

async function* recorded(api: Api, run: string | undefined, after: number): AsyncGenerator<EventView> {
  const limit = LIMITS.longestPage
  for (let seq = after; ;) {
    const { items, next } =
      run === undefined
        ? await api.call('events.list', { after: seq, limit })
        : await api.call('runs.events', { run, after: seq, limit })
    yield* items
    if (next === undefined) return
    seq = next
  }
}

/** Goes on until the run has ended, or the reader has had enough. */
async function* following(operator: Operator, run: string | undefined, after: number): AsyncGenerator<EventView> {
  const { api } = operator
  for (let seq = after; !isOutputGone();) {
    const changed = nextChange(operator, LIMITS.changePollMs * 2)
    const state = run === undefined ? undefined : (await api.call('runs.show', { run })).state
    for await (const event of recorded(api, run, seq)) {
      seq = event.seq
      yield event
    }
    if (state !== undefined && isTerminal(state)) return changed.forget()
    await changed.heard
  }
}

function printLine(json: boolean, event: EventView): void {
  process.stdout.write(`${json ? jsonText(event) : eventLine(event)}\n`)
}

function eventLine({ seq, at, type, runId, data }: EventView): string {
  return visible(`${String(seq).padStart(6)}  ${at}  ${type.padEnd(20)} ${runId ?? ''}  ${JSON.stringify(data)}`)
}
