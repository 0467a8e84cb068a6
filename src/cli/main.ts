import { Command, CommanderError } from 'commander'

import { describeError, viewError } from '../base/errors.ts'
import { addActions } from './actions.ts'
import { addApprovals } from './approvals.ts'
import { addBackup } from './backup.ts'
import { addDemo } from './demo.ts'
import { addDoctor } from './doctor.ts'
import { addDoubts } from './doubts.ts'
import { EXIT, exitCodeOf } from './exit-code.ts'
import { addFollowups } from './followup.ts'
import { addHook } from './hook.ts'
import { addHooks } from './hooks.ts'
import { addInbox } from './inbox.ts'
import { addMcp } from './mcp.ts'
import { addMcpTools } from './mcp-tools.ts'
import { jsonText, visible } from './output.ts'
import { addPolicy } from './policy.ts'
import { addRun } from './run.ts'
import { addRuns } from './runs.ts'
import { addSchedules } from './schedule.ts'
import { addSend } from './send.ts'
import { addStatus } from './status.ts'
import { addThreads } from './threads.ts'
import { addToken } from './token.ts'
import { addUp } from './up.ts'

/** How a command says its exit code: the last one that ran. */
export type SetExit = (code: number) => void

export function makeProgram(setExit: SetExit): Command {
  const program = new Command('holdfast')
    .description('A durable runtime for AI agents: every write once, every stop final, nothing acknowledged is lost.')
    .enablePositionalOptions()
    .option('--home <dir>', 'one folder for everything (default: HOLDFAST_HOME, or the XDG folders)')
    .option(
      '--store <url>',
      'where durable facts live: sqlite:PATH or postgres://… (default: HOLDFAST_STORE, or a file in the home folder)',
    )
    .option('--config <file>', 'the configuration to use')
    .option('--trust', 'use the configuration that is found in the working folder')
    .option('--json', 'one JSON value on standard output, nothing else there')
    .option('--accept-restore', 'go on with a database that was restored from an older backup')
    .option('--stack', 'show where in the code an unexpected error came from')
    .showHelpAfterError('(holdfast help shows the commands)')
  for (const add of [
    addUp,
    addRun,
    addSend,
    addRuns,
    addThreads,
    addInbox,
    addSchedules,
    addFollowups,
    addApprovals,
    addDoubts,
    addActions,
    addPolicy,
    addToken,
    addBackup,
    addStatus,
    addDoctor,
    addDemo,
    addMcp,
    addMcpTools,
    addHooks,
    addHook,
  ])
    add(program, setExit)
  return inherited(program)
}

/** Global options may stand behind the command as well as before it. */
function inherited(program: Command): Command {
  const everywhere = (command: Command): void => {
    command.exitOverride()
    for (const child of command.commands) {
      for (const option of program.options) {
        if (!child.options.some(({ long }) => long === option.long)) child.addOption(option)
      }
      everywhere(child)
    }
  }
  everywhere(program)
  return program
}

export async function main(argv: string[]): Promise<number> {
  let exit: number = EXIT.done
  const program = makeProgram((code) => (exit = code))
  try {
    await program.parseAsync(argv, { from: 'user' })
    return exit
  } catch (error) {
    return explainFailure(error, argv)
  }
}

function explainFailure(error: unknown, all: readonly string[]): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage
  const argv = all.includes('--') ? all.slice(0, all.indexOf('--')) : all
  if (argv.includes('--json')) process.stdout.write(`${jsonText({ error: viewError(error) }, 2)}\n`)
  process.stderr.write(`holdfast: ${visible(describeError(error))}\n`)
  if (argv.includes('--stack') && error instanceof Error) process.stderr.write(`${visible(error.stack ?? '')}\n`)
  return exitCodeOf(error)
}
