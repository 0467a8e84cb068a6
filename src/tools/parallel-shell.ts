import { join } from 'node:path'
import { ensureFolder } from '../base/files.ts'
import type { JsonSchema, Tool, ToolContext, ToolOutcome } from '../loop/ports.ts'
import { readInputFile, writeInputFile } from '../processes/input-file.ts'
import { outcomeOfShell } from './command-outcome.ts'
import { TOOL_LIMITS } from './limits.ts'
import { SHELL_COMMAND, SHELL_OPTIONS, asShell, shellArgv, shellTimeout } from './shell.ts'
import {
  asPerformed,
  cannotStart,
  derivedMark,
  judgeOutcome,
  recoverCommand,
  runCommand,
} from './supervised-command.ts'
import type { CommandPlace } from './supervised-command.ts'

export interface ParallelShellInput {
  readonly commands: readonly string[]
  readonly folder?: string
  readonly timeout_seconds?: number
}

const SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    commands: { type: 'array', items: SHELL_COMMAND, minItems: 1, maxItems: TOOL_LIMITS.parallelCommands },
    ...SHELL_OPTIONS,
  },
  required: ['commands'],
  additionalProperties: false,
}

export function parallelShellTool(place: CommandPlace): Tool {
  return {
    name: 'parallel_shell',
    description: `Runs several shell commands that do not depend on each other, ${TOOL_LIMITS.parallelAtOnce} at a time, and returns the status and output of each in the same order.`,
    ...asShell(SCHEMA),
    perform: (input, context) => asPerformed(context.signal, () => runAll(place, input as ParallelShellInput, context)),
    recover: recoverAll,
  }
}

type Judged = ToolOutcome | { readonly kind: 'never-started' }

const partFolder = (context: ToolContext, index: number) => join(context.folder, String(index))
const partMark = (context: ToolContext, index: number) => derivedMark(context.mark, String(index))

async function runAll(place: CommandPlace, input: ParallelShellInput, context: ToolContext): Promise<Judged> {
  await writeInput(context.folder, input).catch(cannotStart)
  const waiting = input.commands.entries()
  const judged: Judged[] = input.commands.map(() => ({ kind: 'never-started' }))
  // All take from one iterator, so each command is taken once, and the next as soon as somebody is free.
  const work = async () => {
    for (const [index, command] of waiting) judged[index] = await runPart(place, { ...input, command }, context, index)
  }
  const ended = await Promise.allSettled(Array.from({ length: TOOL_LIMITS.parallelAtOnce }, work))
  const surprise = ended.find((each) => each.status === 'rejected')
  if (surprise !== undefined) throw surprise.reason
  return together(input.commands, judged)
}

async function writeInput(folder: string, input: ParallelShellInput): Promise<void> {
  await ensureFolder(folder)
  await writeInputFile(join(folder, 'input.json'), JSON.stringify(input))
}

async function runPart(
  place: CommandPlace,
  input: Omit<ParallelShellInput, 'commands'> & { readonly command: string },
  context: ToolContext,
  index: number,
): Promise<Judged> {
  return asPerformed(context.signal, async () => {
    const outcome = await runCommand(place, context, {
      folder: partFolder(context, index),
      mark: partMark(context, index),
      argv: shellArgv(input.command),
      timeoutMs: shellTimeout(input.timeout_seconds, context),
      ...(input.folder === undefined ? {} : { cwd: input.folder }),
    })
    return judgeOutcome(outcome, context.signal, outcomeOfShell)
  })
}

/** All places are fenced, also those beyond the input: a worker that wakes up late must find none that is free. */
async function recoverAll(context: ToolContext): Promise<Judged> {
  const all = Array.from({ length: TOOL_LIMITS.parallelCommands }, async (_, index) =>
    judgeOutcome(
      await recoverCommand(context, partFolder(context, index), partMark(context, index)),
      context.signal,
      outcomeOfShell,
    ),
  )
  const judged = await Promise.all(all)
  if (judged.every(({ kind }) => kind === 'never-started')) return { kind: 'never-started' }
  const input = JSON.parse(readInputFile(join(context.folder, 'input.json'))) as ParallelShellInput
  return together(input.commands, judged)
}

/** Done when each is; failed when none has run; otherwise what is known of each is in the doubt. */
function together(commands: readonly string[], judged: readonly Judged[]): Judged {
  const parts = commands.map((command, index) => ({
    command,
    ...(judged[index] ?? { kind: 'never-started' as const }),
  }))
  if (parts.every(({ kind }) => kind === 'never-started')) return { kind: 'never-started' }
  if (parts.every(({ kind }) => kind === 'done' || kind === 'failed')) {
    const allFailed = parts.every(({ kind }) => kind === 'failed')
    return allFailed ? { kind: 'failed', error: tell(parts) } : { kind: 'done', result: parts.map(entry) }
  }
  return { kind: 'in-doubt', error: tell(parts) }
}

type Part = Judged & { readonly command: string }

const entry = (part: Part) => ({
  command: part.command,
  ...(part.kind === 'done' ? (part.result as object) : { error: errorOf(part) }),
})

const errorOf = (part: Part) => ('error' in part ? part.error : 'it was not started')

const tell = (parts: readonly Part[]) =>
  parts
    .map((part) => `${part.command}: ${part.kind === 'done' ? JSON.stringify(part.result) : errorOf(part)}`)
    .join('\n')
