import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { CommanderError } from 'commander'
import type { Command } from 'commander'

import { HoldfastError } from '../../src/base/errors.ts'
import { makeProgram } from '../../src/cli/main.ts'
import { typed } from '../../test/server/in-process.ts'
import type { Dice } from '../simulation/seeded.ts'
import { polluted } from './config.ts'
import { bentText, oddText } from './odd.ts'
import { stateOf, changed } from './state.ts'
import { showsStack } from './surface.ts'
import type { Input, OpenSurface, Surface } from './surface.ts'

/** A command as somebody could type it. */
interface Typed {
  readonly words: readonly string[]
  readonly flags: readonly { readonly long: string; readonly takesValue: boolean }[]
  readonly operands: number
}

/** They wait for somebody, start what goes on, or write outside of their home. They are parsed like all others. */
const NOT_CARRIED_OUT =
  /^(up|demo|mcp|hook|run|init|hooks|backup|restore|completion|complete|threads tail|runs events|doctor)\b/
/** Of the commands that may be, one in so many is carried out: each opens a store. */
const CARRIED_OUT = 0.05
const CODES = [0, 1, 2, 3, 4, 5]
/** Good values, so that not all fails at the first word. */
const USUAL = [
  'conversation',
  'hello',
  '10s',
  '30m',
  '5',
  'clerk',
  'a@b',
  '2030-01-01T00:00:00Z',
  'queued',
  'read',
  '*/5 * * * *',
]

class Arguments implements OpenSurface {
  readonly #commands: readonly Typed[]
  readonly #program: Command
  readonly #folder: string
  readonly #home: string

  constructor(program: Command, folder: string) {
    this.#program = parsedOnly(program)
    this.#commands = typedIn(program, [])
    this.#folder = folder
    this.#home = join(folder, 'home')
  }

  static async open(folder: string): Promise<Arguments> {
    const surface = new Arguments(await makeProgram(() => {}), folder)
    process.chdir(folder)
    mkdirSync(join(folder, 'user'))
    writeFileSync(join(folder, 'clerk.json'), JSON.stringify({ replies: [{ text: 'Done.' }] }))
    const config = { agents: { clerk: { model: 'scripted:./clerk.json', system: 'You keep it.' } } }
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
    const made = await surface.#type(['send', '--agent', 'clerk', 'hello', '--json'])
    if (made.code !== 0) throw new Error(`there is nothing to work on: ${made.stderr}`)
    return surface
  }

  #type(line: readonly string[]) {
    const env = { HOME: join(this.#folder, 'user'), HOLDFAST_HOME: this.#home }
    return typed(['--config', 'config.json', ...line], env)
  }

  /** The first word says how far it goes. */
  draw = (dice: Dice): Input => {
    const { words, flags, operands } = dice.pick(this.#commands)
    const line: string[] = [...words]
    for (let count = dice.below(operands + 2); count > 0; count--) line.push(word(dice))
    for (let count = dice.below(4); count > 0 && flags.length > 0; count--) {
      const { long, takesValue } = dice.pick(flags)
      const place = dice.chance(0.7) ? line.length : dice.below(line.length + 1)
      line.splice(place, 0, ...flag(dice, long, takesValue))
    }
    if (dice.chance(0.1)) line.splice(dice.below(line.length + 1), 1, oddText(dice))
    if (dice.chance(0.1)) line.push('--', word(dice))
    const isSafe = !NOT_CARRIED_OUT.test(words.join(' ')) && staysHere(line)
    return [isSafe && dice.chance(CARRIED_OUT) ? 'carry out' : 'parse', ...line]
  }

  async feed([how, ...line]: Input): Promise<readonly string[]> {
    const problems = how === 'carry out' && staysHere(line) ? await this.#carryOut(line) : await this.#parse(line)
    return [...problems, ...polluted()]
  }

  async #parse(line: readonly string[]): Promise<readonly string[]> {
    try {
      await this.#program.parseAsync(line, { from: 'user' })
      return []
    } catch (error) {
      if (error instanceof CommanderError || error instanceof HoldfastError) return []
      return [`"${line.join(' ')}" ended in ${error instanceof Error ? error.stack : String(error)}`]
    }
  }

  async #carryOut(line: readonly string[]): Promise<readonly string[]> {
    if (NOT_CARRIED_OUT.test(line.join(' ')) || line.includes('--wait') || line.includes('--follow')) return []
    const database = join(this.#home, 'holdfast.db')
    const before = stateOf(database, SEEN)
    const { code, stderr } = await this.#type(line)
    const shown = `"${line.join(' ').slice(0, 200)}" ended with ${code}`
    if (code === null || !CODES.includes(code)) return [`${shown}, which the contract does not have`]
    if (showsStack(stderr) && !line.includes('--stack')) return [`${shown} and showed a stack: ${stderr.slice(0, 500)}`]
    if (code !== 0 && stderr.trim() === '') return [`${shown} without a word`]
    if (code === 1 && /^holdfast: (?!\w[\w-]*\/[\w-]+: )/m.test(stderr)) return [`${shown} without a code: ${stderr}`]
    const touched = changed(before, stateOf(database, SEEN))
    return (code === 2 || code === 3) && touched.length > 0 ? [`${shown}, and changed ${touched.join(', ')}`] : []
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

/** Looking is written down there. */
const SEEN = ['store_identity', 'workers', 'agents_seen', 'capacity']

const word = (dice: Dice) =>
  dice.chance(0.5) ? dice.pick(USUAL) : dice.chance(0.3) ? bentText(dice, dice.pick(USUAL)) : oddText(dice)

function flag(dice: Dice, long: string, takesValue: boolean): string[] {
  const name = dice.chance(0.1) ? bentText(dice, long) : long
  if (dice.chance(0.2)) return [`${name}=${word(dice)}`]
  return takesValue !== dice.chance(0.1) ? [name, word(dice)] : [name]
}

/** Nothing that could lead out of the folder, to another store or to another machine. */
const staysHere = (line: readonly string[]) =>
  line.every((each) => !/^[~/]|=[~/]|\.\.|:\/|^--(home|store|config|url|host)/.test(each))

function typedIn(command: Command, words: readonly string[]): Typed[] {
  const flags = command.options.map(({ long, short, required, optional }) => ({
    long: long ?? short ?? '-',
    takesValue: required || optional,
  }))
  const own: Typed = { words, flags, operands: command.registeredArguments.length }
  return [own, ...command.commands.flatMap((child) => typedIn(child, [...words, child.name()]))]
}

/** The same program, whose commands do nothing and which says nothing. */
function parsedOnly(program: Command): Command {
  const silence = (command: Command): void => {
    command.configureOutput({ writeOut: () => {}, writeErr: () => {} })
    if (command.registeredArguments.length > 0 || command.commands.length === 0) command.action(() => {})
    for (const child of command.commands) silence(child)
  }
  silence(program)
  return program
}

export const commandLine: Surface = { name: 'arguments', open: (folder) => Arguments.open(folder) }
