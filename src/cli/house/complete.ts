import type { Argument, Command, Option } from 'commander'

/** One way to go on, and what it is. */
export interface Candidate {
  readonly word: string
  readonly description: string
}

/** Where on a command line somebody is: what may come there is in the table of the commands. */
export interface Spot {
  /** The beginning of the word under the cursor. */
  readonly current: string
  readonly command: Command
  /** An option that waits for its value, or the argument that comes next. */
  readonly wanted: Option | Argument | undefined
  /** Whether a subcommand or an option may still come. */
  readonly open: boolean
}

/** `words`: what stands behind `holdfast`, up to the cursor. Undefined: behind `--`, where the words are another program's. */
export function spotOf(program: Command, words: readonly string[]): Spot | undefined {
  let command = program
  let value: Option | undefined
  let given = 0
  for (const word of words.slice(0, -1)) {
    // Some shells make a word of the sign in --option=value.
    if (word === '=') continue
    if (word === '--') return undefined
    const sub = value === undefined && given === 0 ? subcommand(command, word) : undefined
    if (value !== undefined) value = undefined
    else if (word.startsWith('-')) value = optionThatWaits(command, word)
    else if (sub === undefined) given += 1
    else command = sub
  }
  const current = words.at(-1) ?? ''
  if (value !== undefined) return { current: current === '=' ? '' : current, command, wanted: value, open: false }
  return { current, command, wanted: argumentAt(command, given), open: given === 0 }
}

const subcommand = (command: Command, word: string) =>
  command.commands.find((each) => each.name() === word || each.aliases().includes(word))

const optionThatWaits = (command: Command, word: string) =>
  command.options.find(({ long, short, required }) => required && (long === word || short === word))

function argumentAt({ registeredArguments: all }: Command, given: number): Argument | undefined {
  const last = all.at(-1)
  return all[given] ?? (last?.variadic === true ? last : undefined)
}

/** What the table itself says; ids are in the store. */
export function candidatesAt({ command, wanted, open, current }: Spot): Candidate[] {
  if (current.startsWith('-') && !isOption(wanted)) return matching(optionsOf(command), current)
  const choices = (wanted?.argChoices ?? []).map((word) => ({ word, description: wanted?.description ?? '' }))
  return matching([...(open ? subcommandsOf(command) : []), ...choices], current)
}

export const matching = (candidates: readonly Candidate[], current: string) =>
  candidates.filter(({ word }) => word.startsWith(current))

const isOption = (wanted: Option | Argument | undefined): wanted is Option => wanted !== undefined && 'flags' in wanted

/** What is wanted, in the word that the help uses: `run` of `<run>` and of `--after <run>`. */
export function nounOf({ wanted }: Spot): string | undefined {
  if (wanted === undefined) return undefined
  return isOption(wanted) ? /[<[]([\w-]+)/.exec(wanted.flags)?.[1] : wanted.name()
}

/** As the help shows them. */
const subcommandsOf = (command: Command): Candidate[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .map((each) => ({ word: each.name(), description: each.description() }))

const optionsOf = ({ options }: Command): Candidate[] =>
  options
    .filter(({ hidden, long }) => !hidden && long !== undefined)
    .map(({ long, description }) => ({ word: long ?? '', description }))
