import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { OnceWindow } from '../actions/window.ts'
import { canonicalJson } from '../base/canonical-json.ts'
import { describeError } from '../base/errors.ts'
import { ensureFolder, errorCode } from '../base/files.ts'
import type { JsonSchema, Tool, ToolContext, ToolOutcome } from '../loop/ports.ts'
import { describeEnd } from '../processes/command.ts'
import { writeInputFile } from '../processes/input-file.ts'
import type { Outcome } from '../processes/supervised.ts'
import { outcomeOfEnd, resultOf } from './command-outcome.ts'
import { identityOf } from './identity.ts'
import { TOOL_LIMITS } from './limits.ts'
import { validateInput } from './schema.ts'
import {
  asPerformed,
  cannotStart,
  derivedMark,
  judgeOutcome,
  recoverCommand,
  runCommand,
  timeLeft,
} from './supervised-command.ts'
import type { Argv, CommandPlace } from './supervised-command.ts'

/** A tool of the configuration: a command that reads its input and says by its exit whether it happened. */
export interface CommandToolDefinition {
  readonly effect: 'read' | 'write'
  readonly description: string
  readonly input: JsonSchema
  /** The arguments that make two calls the same action; absent: all of them. */
  readonly identity?: readonly string[]
  readonly repeat: 'once' | 'each'
  /** Widens `once` beyond one run. */
  readonly once?: OnceWindow
  readonly command: Argv
  readonly probe?: Argv
  /** Ends what runs elsewhere. Without it, what the command began in a container or over ssh is beyond our reach (R4). */
  readonly stop?: Argv
  readonly idempotent: boolean
  readonly timeoutMs: number
}

export function commandTool(name: string, definition: CommandToolDefinition, place: CommandPlace): Tool {
  const { effect, description, input: inputSchema, repeat, idempotent, timeoutMs, probe, once } = definition
  const machine: Machine = { definition, place }
  return {
    name,
    description,
    inputSchema,
    effect,
    repeat,
    ...(once === undefined ? {} : { once }),
    timeoutMs,
    idempotent,
    // Another command, probe or identity is another tool, to whoever approved this one.
    definition: { ...definition, folder: place.known ?? place.cwd },
    identity: (input) => identityOf(input, definition.identity),
    validate: (input) => validateInput(inputSchema, input),
    perform: (input, context) => perform(machine, input, context),
    recover: (context) => recover(machine, context),
    ...(probe === undefined
      ? {}
      : { probe: (input, context) => askWorld(machine, probe, input, context).catch(noAnswer) }),
  }
}

interface Machine {
  readonly definition: CommandToolDefinition
  readonly place: CommandPlace
}

const inputFile = (folder: string) => join(folder, 'input.json')

async function writeInput({ definition }: Machine, folder: string, input: unknown): Promise<void> {
  await ensureFolder(folder)
  // Only a stop command needs the input after a reboot: what runs elsewhere has not been rebooted.
  const durable = definition.stop !== undefined
  await writeInputFile(inputFile(folder), canonicalJson(input), { durable })
}

function perform(machine: Machine, input: unknown, context: ToolContext): Promise<ToolOutcome> {
  const { definition, place } = machine
  const { folder, mark, signal } = context
  return asPerformed(signal, async () => {
    await writeInput(machine, folder, input).catch(cannotStart)
    const timeoutMs = timeLeft(definition.timeoutMs, context)
    const stdin = { file: inputFile(folder) }
    const outcome = await runCommand(place, context, { folder, mark, argv: definition.command, timeoutMs, stdin })
    return settle(machine, context, outcome)
  })
}

const recover = async (machine: Machine, context: ToolContext) =>
  settle(machine, context, await recoverCommand(context, context.folder, context.mark))

async function settle(machine: Machine, context: ToolContext, outcome: Outcome) {
  const judged = judgeOutcome(outcome, context.signal, outcomeOfEnd)
  if (judged.kind !== 'in-doubt') return judged
  // Here all is dead. What has a stop command is elsewhere too, and ended there by nothing else.
  if (machine.definition.stop === undefined) return { ...judged, over: true }
  if (!wasCutShort(outcome)) return judged
  const trouble = await stopElsewhere(machine.definition.stop, machine.place, context)
  if (trouble === undefined) return { ...judged, over: true }
  return { ...judged, error: `${judged.error}\n${trouble}`, over: false }
}

/** What was not allowed to end by itself may still go on elsewhere. */
const wasCutShort = (outcome: Outcome) =>
  outcome.kind === 'cut-off' || (outcome.kind === 'ended' && outcome.end.stopped !== undefined)

/**
 * Ends what runs in a container or on another host, after everything here is dead. It has a limit of its own, because
 * the turn's signal has ended already. One folder for one action: a worker that goes on after a crash does not run it
 * a second time.
 */
async function stopElsewhere(argv: Argv, place: CommandPlace, context: ToolContext): Promise<string | undefined> {
  const start = {
    folder: join(context.folder, 'stop'),
    mark: derivedMark(context.mark, 'stop'),
    argv,
    timeoutMs: TOOL_LIMITS.stopCommandMs,
    stdin: { file: inputFile(context.folder) },
  }
  const briefly = { ...place, graceMs: 0 }
  const outcome = await runCommand(briefly, context, start, new AbortController().signal).catch(describeError)
  if (typeof outcome === 'string') return `its stop command failed: ${outcome}`
  if (outcome.kind === 'ended' && outcome.end.exitCode === 0 && outcome.end.stopped === undefined) return undefined
  return `its stop command failed: ${outcome.kind === 'ended' ? describeEnd(outcome.end) : outcome.kind}`
}

type ProbeAnswer = ToolOutcome | { readonly kind: 'unknown' }

/** A question that could not be asked leaves the doubt as it is, too. */
const noAnswer = (): ProbeAnswer => ({ kind: 'unknown' })

async function askWorld(machine: Machine, argv: Argv, input: unknown, context: ToolContext): Promise<ProbeAnswer> {
  const { folder, name } = await newProbeFolder(context.folder)
  await writeInput(machine, folder, input)
  const start = {
    folder,
    mark: derivedMark(context.mark, name),
    argv,
    timeoutMs: timeLeft(TOOL_LIMITS.probeMs, context),
    stdin: { file: inputFile(folder) },
  }
  const outcome = await runCommand(machine.place, context, start)
  const answered = outcome.kind === 'ended' && outcome.end.exitCode === 0 && outcome.end.stopped === undefined
  return answered ? readAnswer(resultOf(outcome.end.stdout)) : { kind: 'unknown' }
}

/**
 * Every question needs a folder of its own: in a used one it would get the old answer. Beside that of the try, which must not be
 * there only because somebody asked: an empty one is the proof that nothing was started.
 */
async function newProbeFolder(asked: string, number = 1): Promise<{ folder: string; name: string }> {
  const name = `probe-${number}`
  const folder = `${asked}-${name}`
  try {
    await ensureFolder(dirname(asked))
    await mkdir(folder, { mode: 0o700 })
    return { folder, name }
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
    return newProbeFolder(asked, number + 1)
  }
}

/** Only a clear answer counts; whatever else was printed leaves the doubt as it is. */
export function readAnswer(printed: unknown): ProbeAnswer {
  const answer = typeof printed === 'object' && printed !== null ? (printed as Record<string, unknown>) : {}
  if (answer['outcome'] === 'done') return { kind: 'done', result: answer['result'] ?? null }
  if (answer['outcome'] === 'not_done') return { kind: 'failed', error: 'its probe says that it did not happen' }
  return { kind: 'unknown' }
}
