import { PERMISSIONS, PRESETS } from '../clients/preset.ts'
import type { ClientSettings } from '../clients/preset.ts'
import { CLIENTS } from '../sessions/session.ts'
import type { Path } from './json-text.ts'
import type { Complain } from './problem.ts'
import { readList, readOneOf, readText } from './read.ts'
import type { JsonRecord, Reader } from './read.ts'

/** An agent that is Claude Code, Codex or Gemini CLI: how it is started and read we know ourselves. */
export interface ClientConfig {
  readonly program: string
  readonly client: ClientSettings
}

/** What only such an agent has. */
export const CLIENT_KEYS = ['client', 'program', 'permissions', 'args'] as const

export function readClient(agent: JsonRecord, path: Path, complain: Complain): ClientConfig | undefined {
  const name = readOneOf(CLIENTS)(agent['client'], [...path, 'client'], complain)
  const given = <T>(key: string, read: Reader<T>) =>
    agent[key] === undefined ? undefined : read(agent[key], [...path, key], complain)
  const [program, model] = [given('program', readText), given('model', readWord)]
  const permissions = given('permissions', readOneOf(PERMISSIONS))
  const args = readList(agent['args'] ?? [], [...path, 'args'], complain, readText)
  if (name === undefined) return undefined
  for (const [index, arg] of args.entries()) {
    const ours = PRESETS[name].ours.find((flag) => arg === flag || arg.startsWith(`${flag}=`))
    if (ours !== undefined) complain([...path, 'args', index], `is set by Holdfast for "${name}"`, `leave out ${ours}`)
  }
  const client = {
    name,
    args,
    ...(model === undefined ? {} : { model }),
    ...(permissions === undefined ? {} : { permissions }),
  }
  return { program: program ?? name, client }
}

/** It becomes an argument of its own: it must not be taken for a flag. */
const readWord: Reader<string> = (value, path, complain) =>
  typeof value === 'string' && /^[^-\s]\S*$/.test(value)
    ? value
    : complain(path, 'is not the name of a model', 'write it as the client knows it: "opus", "gpt-5.5"')
