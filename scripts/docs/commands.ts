import type { Command } from 'commander'

import { makeProgram } from '../../src/cli/main.ts'
import { page, table } from './markdown.ts'

const EXIT_CODES = [
  ['0', 'done'],
  ['1', 'failed'],
  ['2', 'wrong usage'],
  ['3', 'there is no such thing'],
  ['4', 'refused, a conflict, or somebody was faster'],
  ['5', 'it waits for a person'],
]

export async function commandsPage(): Promise<string> {
  const program = await makeProgram(() => {})
  const everywhere = new Set(program.options.map(({ long }) => long))
  return page(
    'Commands',
    'What `holdfast help COMMAND` says, for all of them. An id can be given by a prefix that only one has; durations are `500ms`, `10s`, `30m`, `12h`, `14d`. Every\nlisting and every result has `--json`: one JSON value on standard output, and nothing else there.',
    '## Exit codes',
    table(['code', 'means'], EXIT_CODES),
    '## Options of every command',
    options(program, () => true),
    ...program.commands.flatMap((command) => sections(command, [], everywhere)),
  )
}

function sections(command: Command, above: readonly string[], everywhere: ReadonlySet<string | undefined>): string[] {
  const words = [...above, command.name()]
  const own = options(command, (long) => !everywhere.has(long))
  const args = command.registeredArguments.filter(({ description }) => description !== '')
  const parts = [
    `${above.length === 0 ? '##' : '###'} ${words.join(' ')}`,
    `\`${usage(command, words)}\``,
    ...(command.description() === '' ? [] : [sentence(command.description())]),
    ...(args.length === 0 ? [] : [args.map((each) => `- \`${each.name()}\`: ${each.description}`).join('\n')]),
    ...(own === '' ? [] : [own]),
  ]
  return [...parts, ...command.commands.flatMap((child) => sections(child, words, everywhere))]
}

function usage(command: Command, words: readonly string[]): string {
  const args = command.registeredArguments.map((each) => {
    const name = `${each.name()}${each.variadic ? '…' : ''}`
    return each.required ? `<${name}>` : `[${name}]`
  })
  const more = command.commands.length === 0 ? [] : [command.commands.map((child) => child.name()).join('|')]
  return ['holdfast', ...words, ...more, ...args].join(' ')
}

const sentence = (text: string) => `${text[0]?.toUpperCase() ?? ''}${text.slice(1)}.`

function options(command: Command, isOwn: (long: string | undefined) => boolean): string {
  const rows = command.options
    .filter(({ long, hidden }) => !hidden && isOwn(long ?? undefined))
    .map((option) => [`\`${option.flags}\``, option.description + defaultOf(option.defaultValue)])
  return rows.length === 0 ? '' : table(['option', 'does'], rows)
}

/** One that depends on the machine is no part of a page. */
const defaultOf = (value: unknown): string => (typeof value === 'string' && value !== '' ? ` (default: ${value})` : '')
