import type { Path } from './json-text.ts'
import type { Complain } from './problem.ts'
import { readRecord, readText } from './read.ts'

/** `{ "secret": "${VAR}" }`: what the webhooks of schedules are signed with. */
export function readWebhookSecret(value: unknown, path: Path, complain: Complain): string | undefined {
  const { secret } = readRecord(value, ['secret'], path, complain)
  if (secret !== undefined) return readText(secret, [...path, 'secret'], complain)
  return complain(path, 'has no "secret"', 'write "secret": "${NAME}", the name of a variable that both sides know')
}
