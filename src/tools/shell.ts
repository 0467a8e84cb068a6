import type { JsonSchema, Tool, ToolContext } from '../loop/ports.ts'
import { outcomeOfShell } from './command-outcome.ts'
import { TOOL_LIMITS } from './limits.ts'
import { validateInput } from './schema.ts'
import { asPerformed, judgeOutcome, recoverCommand, runCommand, timeLeft } from './supervised-command.ts'
import type { Argv, CommandPlace } from './supervised-command.ts'

export interface ShellInput {
  readonly command: string
  readonly folder?: string
  readonly timeout_seconds?: number
}

export const SHELL_COMMAND: JsonSchema = {
  type: 'string',
  minLength: 1,
  description: 'For /bin/sh -c. Nothing to read on standard input.',
}

export const SHELL_OPTIONS: Readonly<Record<string, JsonSchema>> = {
  folder: { type: 'string', minLength: 1, description: 'Working folder; the default is the workspace.' },
  timeout_seconds: {
    type: 'integer',
    minimum: 1,
    maximum: TOOL_LIMITS.backstopMs / 1_000,
    description: 'Every process is ended after this long. Default 1800.',
  },
}

const SCHEMA: JsonSchema = {
  type: 'object',
  properties: { command: SHELL_COMMAND, ...SHELL_OPTIONS },
  required: ['command'],
  additionalProperties: false,
}

export const shellArgv = (command: string): Argv => ['/bin/sh', '-c', command]

export const shellTimeout = (seconds: number | undefined, context: ToolContext): number =>
  timeLeft(seconds === undefined ? TOOL_LIMITS.backstopMs : seconds * 1_000, context)

/** What a tool that is a shell has, whatever it runs: nobody knows what that does. */
export const asShell = (inputSchema: JsonSchema) =>
  ({
    inputSchema,
    effect: 'write',
    repeat: 'each',
    timeoutMs: TOOL_LIMITS.backstopMs,
    idempotent: false,
    identity: (input: unknown) => input,
    validate: (input: unknown) => validateInput(inputSchema, input),
  }) as const

export function shellTool(place: CommandPlace): Tool {
  return {
    name: 'shell',
    description:
      'Runs a shell command and returns its exit status and what it printed (both ends, if that is much). Processes that it leaves behind are ended with it.',
    ...asShell(SCHEMA),
    perform: (input, context) => asPerformed(context.signal, () => runShell(place, input as ShellInput, context)),
    recover: async (context) =>
      judgeOutcome(await recoverCommand(context, context.folder, context.mark), context.signal, outcomeOfShell),
  }
}

async function runShell(place: CommandPlace, input: ShellInput, context: ToolContext) {
  const { folder, mark, signal } = context
  const outcome = await runCommand(place, context, {
    folder,
    mark,
    argv: shellArgv(input.command),
    timeoutMs: shellTimeout(input.timeout_seconds, context),
    ...(input.folder === undefined ? {} : { cwd: input.folder }),
  })
  return judgeOutcome(outcome, signal, outcomeOfShell)
}
