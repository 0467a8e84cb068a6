import { canonicalJson } from '../base/canonical-json.ts'
import type { ToolOutcome } from '../loop/ports.ts'
import { describeEnd } from '../processes/command.ts'
import type { CommandEnd, OutputText, StreamName } from '../processes/command.ts'
import { TOOL_LIMITS } from './limits.ts'

/*
 * What a command's end says about the action that it was. The rule of the contract:
 *
 *   exit 0                                     done, and what it printed is the result
 *   exit 1 to 125                              failed: the tool says that it did not happen
 *   126, 127, not found, stopped before it ran failed: it could not be started
 *   128 and more, a signal, a stop, a loss     in doubt: it may have happened
 */

const LAST_HONEST_EXIT = 127

/** `why` is how a stop of ours is called: the supervisor only knows that it was told to end. */
export function outcomeOfEnd(end: CommandEnd, why = describeEnd(end)): ToolOutcome {
  const known = knownNotToHaveRun(end, why)
  if (known !== undefined) return known
  if (end.stopped !== undefined || end.exitCode === null || end.exitCode > LAST_HONEST_EXIT) {
    return { kind: 'in-doubt', error: `${why}${printedBefore(end)}` }
  }
  return end.exitCode === 0
    ? { kind: 'done', result: resultOf(end.stdout) }
    : { kind: 'failed', error: `${why}${complaint(end)}` }
}

/** Any exit of a shell is an answer, and the status is a part of it. Only a stop of ours leaves it in doubt. */
export function outcomeOfShell(end: CommandEnd, why = describeEnd(end)): ToolOutcome {
  const known = knownNotToHaveRun(end, why)
  if (known !== undefined) return known
  if (end.stopped !== undefined) return { kind: 'in-doubt', error: `${why}${printedBefore(end)}` }
  return { kind: 'done', result: shellResult(end) }
}

/** A launched command always leaves a status or a signal; without either it was stopped before. */
function knownNotToHaveRun(end: CommandEnd, why: string): ToolOutcome | undefined {
  if (end.spawnError !== undefined) return { kind: 'failed', error: `could not be started: ${why}`, unbegun: true }
  const ran = end.exitCode !== null || end.signal !== null
  return ran ? undefined : { kind: 'failed', error: `${why} before it was started`, unbegun: true }
}

export function outcomeOfCutOff(output: Readonly<Record<StreamName, OutputText>>): ToolOutcome {
  const error = `cut off by a crash: its supervisor was lost after it had started, and its processes were ended`
  return { kind: 'in-doubt', error: `${error}${printedBefore(output)}` }
}

export interface ShellResult {
  /** Null when a signal ended it. */
  readonly status: number | null
  readonly signal?: string
  readonly stdout: string
  readonly stderr: string
}

const shellResult = (end: CommandEnd): ShellResult => ({
  status: end.exitCode,
  ...(end.signal === null ? {} : { signal: end.signal }),
  stdout: bothEnds(end.stdout),
  stderr: bothEnds(end.stderr),
})

export interface LongText {
  readonly head: string
  readonly tail: string
  readonly totalBytes: number
}

/** JSON if it is JSON that can be stored, otherwise the text; of more than fits, both ends. */
export function resultOf({ head, tail, totalBytes, truncated }: OutputText): unknown {
  if (truncated) return { head, tail, totalBytes } satisfies LongText
  const text = head + tail
  try {
    const value: unknown = JSON.parse(text)
    canonicalJson(value)
    return value
  } catch {
    return text
  }
}

function bothEnds({ head, tail, totalBytes, truncated }: OutputText): string {
  return truncated ? `${head}\n… (the middle of ${totalBytes} bytes is left out) …\n${tail}` : head + tail
}

function complaint({ stdout, stderr }: Pick<CommandEnd, StreamName>): string {
  const said = lastOf(stderr) || lastOf(stdout)
  return said === '' ? '' : `: ${said}`
}

function lastOf({ head, tail, truncated }: OutputText): string {
  const text = (truncated ? tail : head + tail).trim()
  return text.length <= TOOL_LIMITS.errorCharacters ? text : `…${text.slice(-TOOL_LIMITS.errorCharacters)}`
}

function printedBefore({ stdout, stderr }: Readonly<Record<StreamName, OutputText>>): string {
  const printed = [shortened(stdout), shortened(stderr)].filter((text) => text !== '')
  return printed.length === 0 ? '' : `; it had printed:\n${printed.join('\n')}`
}

function shortened(output: OutputText): string {
  const text = bothEnds(output).trim()
  const each = TOOL_LIMITS.printedCharacters
  return text.length <= 2 * each ? text : `${text.slice(0, each)}\n…\n${text.slice(-each)}`
}
