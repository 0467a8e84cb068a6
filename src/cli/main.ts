import { inspect } from 'node:util'

import { Command, CommanderError } from 'commander'

import { HoldfastError, describeError, viewError } from '../base/errors.ts'
import { ownVersion } from '../base/version.ts'
import { outlineCommands } from './commands.ts'
import { beDiscreet } from './around/discreet.ts'
import { EXIT, exitCodeOf } from './words/exit-code.ts'
import { jsonText, makeOutput, visible } from './words/output.ts'

export { watchOutput } from './words/broken-output.ts'

/** How a command says its exit code: the last one that ran. */
export type SetExit = (code: number) => void

const programFor = (words: readonly string[]) => makeProgram(() => {}, words)

/** With everything in it, or with only the one command that `argv` calls or asks about. */
export async function makeProgram(setExit: SetExit, argv?: readonly string[]): Promise<Command> {
  const program = bareProgram()
  const commands = outlineCommands(program)
  const called = argv === undefined ? undefined : calledBy(program, argv)
  for (const [outline, load] of commands) {
    if (argv === undefined || outline.name() === called) (await load())(outline, setExit, programFor)
  }
  return inherited(program)
}

function bareProgram(): Command {
  return new Command('holdfast')
    .description('A durable runtime for AI agents: every write once, every stop final, nothing acknowledged is lost.')
    .exitOverride()
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
    .option(VERSION, 'which Holdfast this is')
    .showHelpAfterError('(holdfast help shows the commands)')
}

const VERSION = '-V, --version'

/** The name of the command, as the program itself reads it: options may stand before it. */
function calledBy(program: Command, argv: readonly string[]): string | undefined {
  const { operands } = program.parseOptions([...argv])
  return operands[0] === 'help' ? operands[1] : operands[0]
}

/** Global options may stand behind the command as well as before it. */
function inherited(program: Command): Command {
  const everywhere = (command: Command, name: string): void => {
    command.exitOverride()
    for (const child of command.commands) {
      child.showHelpAfterError(`(${name} ${child.name()} --help says how)`)
      for (const option of program.options) {
        if (option.flags === VERSION || child.options.some(({ long }) => long === option.long)) continue
        child.addOption(option)
      }
      everywhere(child, `${name} ${child.name()}`)
    }
  }
  everywhere(program, program.name())
  return program
}

export async function main(argv: string[]): Promise<number> {
  let exit: number = EXIT.done
  try {
    const program = await makeProgram((code) => (exit = code), argv)
    const { version, json } = program.opts<{ version?: boolean; json?: boolean }>()
    if (version === true) return sayVersion(json === true)
    await program.parseAsync(argv, { from: 'user' })
    return exit
  } catch (error) {
    return explainFailure(error, argv)
  }
}

function sayVersion(json: boolean): number {
  const version = ownVersion()
  makeOutput(json).result({ version }, () => version)
  return EXIT.done
}

/** What nobody foresaw ends the process, as it would without us; what it says leaves by the same door as everything else. */
export function endDiscreetly(error: unknown): void {
  process.stderr.write(`${visible(inspect(error))}\n`)
  process.exit(EXIT.failed)
}

async function explainFailure(failure: unknown, all: readonly string[]): Promise<number> {
  const error = isFolderGone(failure) ? folderGone(failure) : failure
  const argv = all.includes('--') ? all.slice(0, all.indexOf('--')) : all
  if (error instanceof CommanderError) return explainUsage(error, argv.includes('--json'))
  await beDiscreet()
  if (argv.includes('--json')) process.stdout.write(`${jsonText({ error: viewError(error) }, 2)}\n`)
  process.stderr.write(`holdfast: ${visible(describeError(error))}\n`)
  if (argv.includes('--stack') && error instanceof Error) process.stderr.write(`${visible(error.stack ?? '')}\n`)
  return exitCodeOf(error)
}

const isFolderGone = (error: unknown) => error instanceof Error && 'syscall' in error && error.syscall === 'uv_cwd'

const folderGone = (cause: unknown) =>
  new HoldfastError('usage/no-working-folder', 'the folder in which this was started is gone', {
    remedy: 'go to one that is there, then try again',
    cause,
  })

/** The parser has told a person already; whoever reads JSON gets an error as of any other kind. */
function explainUsage({ exitCode, message, code }: CommanderError, json: boolean): number {
  if (exitCode === 0) return EXIT.done
  // Without a subcommand it is the help, which has been shown.
  const text = code === 'commander.help' ? 'a command is missing' : message.replace(/^error: /, '')
  const error = new HoldfastError('usage/arguments', text, { remedy: 'holdfast help shows the commands' })
  if (json) process.stdout.write(`${jsonText({ error: viewError(error) }, 2)}\n`)
  return EXIT.usage
}
