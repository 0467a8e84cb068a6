import type { Run } from '../api/shapes.ts'
import { brief, visible } from './words.ts'

/** What a run does, in one line. */
export function subject({ request, agent }: Pick<Run, 'request' | 'agent'>): string {
  if (request.kind === 'command') return visible(request.argv.join(' '))
  if (request.kind === 'observed') return visible(`a turn of ${request.client}`)
  return visible(`${isCall({ request }) ? 'a call' : 'a turn'} of ${agent}`)
}

/** Of a function: it was given an input, and reads messages only where it asks a model. */
export const isCall = ({ request }: Pick<Run, 'request'>): boolean =>
  request.kind === 'agent' && request.called === true

interface Stream {
  readonly head?: string
  readonly tail?: string
  readonly truncated?: boolean
}

/** What a command left behind. */
export interface Ending {
  readonly exitCode?: number | null
  readonly signal?: string | null
  readonly survivorsKilled?: number
  readonly stdout?: Stream
  readonly stderr?: Stream
}

/** Both ends of what a command printed. */
export function printed({ head = '', tail = '', truncated = false }: Stream = {}): string {
  return truncated ? `${head}\n…\n${tail}` : head + tail
}

/** How it stands, in one line: what it waits for, why it failed, what came of it. */
export function outcome(run: Run): string {
  if (run.error !== undefined) return visible(run.error)
  if (run.state === 'parked') return `waits for ${visible(run.parkedFor ?? 'something')}`
  if (run.result === undefined) return ''
  if (run.request.kind !== 'command') return brief(run.result, 160)
  return brief(printed((run.result as Ending).stdout), 160)
}
