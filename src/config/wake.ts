import type { Path } from './json-text.ts'
import type { Complain } from './problem.ts'
import { readCommand, readRecord } from './read.ts'

type Argv = readonly [string, ...string[]]

const CLIENTS = ['claude', 'codex', 'gemini', '*']

/** One command for the sessions of every client, or one for each: `["notify", "me"]`, `{ "claude": ["notify", "me"] }`. */
export function readWake(value: unknown, path: Path, complain: Complain): ReadonlyMap<string, Argv> {
  if (Array.isArray(value)) {
    const argv = readCommand(value, path, complain)
    return new Map(argv === undefined ? [] : [['*', argv]])
  }
  const written = readRecord(value, CLIENTS, path, complain)
  const known = CLIENTS.filter((client) => written[client] !== undefined)
  const commands = known.map((client) => [client, readCommand(written[client], [...path, client], complain)] as const)
  return new Map(commands.filter((entry): entry is readonly [string, Argv] => entry[1] !== undefined))
}
