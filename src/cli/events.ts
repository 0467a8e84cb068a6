import type { RunId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { eventsAfter, runEventsAfter } from '../events/event.ts'
import type { Event } from '../events/event.ts'
import { findRun, isTerminal } from '../runs/run.ts'
import { viewEvent } from '../runs/view.ts'
import type { Runtime } from '../runtime.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-code.ts'
import { theRun } from '../control/find.ts'
import { jsonText, visible } from './output.ts'
import { nextChange } from './wait.ts'

export interface EventFlags {
  readonly after: number
  readonly follow?: boolean
}

const PAGE = 1_000

export async function showEvents(
  { runtime, output }: Context,
  given: string | undefined,
  flags: EventFlags,
): Promise<number> {
  const id = given === undefined ? undefined : (await theRun(runtime.store, given)).id
  if (flags.follow === true) {
    for await (const event of following(runtime, id, flags.after)) printLine(output.json, event)
    return EXIT.done
  }
  const found: Event[] = []
  for await (const event of recorded(runtime, id, flags.after)) found.push(event)
  output.result(found.map(viewEvent), () => (found.length === 0 ? 'no events' : found.map(eventLine).join('\n')))
  return EXIT.done
}

async function* recorded({ store }: Runtime, id: RunId | undefined, after: number): AsyncGenerator<Event> {
  for (let seq = after; ;) {
    const page =
      id === undefined ? await store.read(eventsAfter, seq, PAGE) : await store.read(runEventsAfter, id, seq, PAGE)
    yield* page
    const last = page.at(-1)
    if (last === undefined) return
    seq = last.seq
  }
}

/** Goes on until the run has ended; without a run, until the reader has had enough. */
async function* following(runtime: Runtime, id: RunId | undefined, after: number): AsyncGenerator<Event> {
  for (let seq = after; ;) {
    const changed = nextChange(runtime, LIMITS.changePollMs * 2)
    const run = id === undefined ? undefined : await runtime.store.read(findRun, id)
    for await (const event of recorded(runtime, id, seq)) {
      seq = event.seq
      yield event
    }
    if (run !== undefined && isTerminal(run.state)) return changed.forget()
    await changed.heard
  }
}

function printLine(json: boolean, event: Event): void {
  process.stdout.write(`${json ? jsonText(viewEvent(event)) : eventLine(event)}\n`)
}

function eventLine({ seq, at, type, runId, data }: Event): string {
  return visible(
    `${String(seq).padStart(6)}  ${new Date(at).toISOString()}  ${type.padEnd(20)} ${runId ?? ''}  ${JSON.stringify(data)}`,
  )
}
