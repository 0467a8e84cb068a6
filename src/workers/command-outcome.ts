import { LIMITS } from '../base/limits.ts'
import { describeEnd } from '../processes/command.ts'
import type { CommandEnd, OutputText } from '../processes/command.ts'
import type { Outcome } from '../runs/finish.ts'

/** What a run's end says about the command that it executed; the turn of an agent also has its words. */
export function outcomeOfEnd(end: CommandEnd, isTurn = false): Outcome {
  const { exitCode, signal, stdout, stderr, survivorsKilled, containment, startedAt, endedAt } = end
  const result = {
    exitCode,
    signal,
    stdout,
    stderr,
    survivorsKilled,
    containment: containment.kind,
    startedAt,
    endedAt,
  }
  const ended = verdict(end)
  if (!isTurn) return { ...ended, result, summary: summaryOf(stdout) }
  const text = wordsOf(stdout).trim()
  const said = ended.state === 'cancelled' ? {} : { reply: text }
  return { ...ended, ...said, result: { text, ...result }, summary: shortened(text) }
}

/** The supervisor was lost after the command may have run, and left no status: nobody knows, and nobody runs it again. */
export function outcomeOfCutOff(output: Readonly<Record<'stdout' | 'stderr', OutputText>>): Outcome {
  const error =
    'its supervisor was lost after the command had started; its processes were ended, its result is not known'
  return { state: 'failed', code: 'lost', error, result: output, summary: summaryOf(output.stdout) }
}

function verdict(end: CommandEnd): Outcome {
  const error = describeEnd(end)
  if (end.stopped?.why === 'cancelled') return { state: 'cancelled' }
  if (end.stopped?.why === 'timeout') return { state: 'failed', code: 'timeout', error }
  if (end.stopped?.why === 'lease-lost') return { state: 'failed', code: 'lost', error }
  if (end.spawnError !== undefined) return { state: 'failed', code: 'spawn', error }
  if (end.exitCode === 0) return { state: 'succeeded' }
  return { state: 'failed', code: end.signal === null ? 'exit' : 'killed', error }
}

/** The end of what it printed: where an agent says what it did. */
const summaryOf = (output: OutputText) => shortened(wordsOf(output))

const wordsOf = ({ head, tail, truncated }: OutputText) => (truncated ? `${head}\n…\n${tail}` : head + tail)

function shortened(text: string): string {
  return text.length <= LIMITS.summaryCharacters ? text : `…${text.slice(-LIMITS.summaryCharacters)}`
}
