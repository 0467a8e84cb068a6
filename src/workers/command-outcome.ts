import { LIMITS } from '../base/limits.ts'
import { describeEnd } from '../processes/command.ts'
import type { CommandEnd, OutputText } from '../processes/command.ts'
import type { Outcome } from '../runs/finish.ts'

/**
 * What a run's end says about the command that it executed. The turn of an agent also has its words; `setBy` is the key of the agent that names
 * the program.
 */
export function outcomeOfEnd(end: CommandEnd, turn?: { readonly setBy: 'command' | 'program' }): Outcome {
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
  const ended = verdict(end, turn?.setBy)
  if (turn === undefined) return { ...ended, result, summary: summaryOf(stdout) }
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

function verdict(end: CommandEnd, setBy: string | undefined): Outcome {
  const error = describeEnd(end)
  if (end.stopped?.why === 'cancelled') return { state: 'cancelled' }
  if (end.stopped?.why === 'timeout') return { state: 'failed', code: 'timeout', error }
  if (end.stopped?.why === 'lease-lost') return { state: 'failed', code: 'lost', error }
  if (end.spawnError !== undefined)
    return { state: 'failed', code: 'spawn', error: `${error}${whereToLook(end, setBy)}` }
  if (end.exitCode === 0) return { state: 'succeeded' }
  return { state: 'failed', code: end.signal === null ? 'exit' : 'killed', error }
}

const NOT_FOUND = 127

/** Who configured an agent may have its program on another PATH than the daemon has. */
const whereToLook = ({ exitCode }: CommandEnd, setBy: string | undefined) =>
  setBy === undefined || exitCode !== NOT_FOUND
    ? ''
    : ` (install it where the PATH of the daemon leads, or write where it is in "${setBy}" of the agent)`

/** The end of what it printed: where an agent says what it did. */
const summaryOf = (output: OutputText) => shortened(wordsOf(output))

const wordsOf = ({ head, tail, truncated }: OutputText) => (truncated ? `${head}\n…\n${tail}` : head + tail)

function shortened(text: string): string {
  return text.length <= LIMITS.summaryCharacters ? text : `…${text.slice(-LIMITS.summaryCharacters)}`
}
