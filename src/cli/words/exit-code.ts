import { constants } from 'node:os'

import { HoldfastError } from '../../base/errors.ts'

/** What scripts rely on (CONTRACT.md). */
export const EXIT = { done: 0, failed: 1, usage: 2, notFound: 3, refused: 4, waiting: 5 } as const

const REFUSED = new Set([
  'daemon/already-running',
  'runs/key-conflict',
  'messages/key-conflict',
  'messages/not-dead',
  'messages/delivery-lost',
  'messages/acknowledged',
  'messages/in-use',
  'messages/not-accepted',
  'threads/busy',
  'threads/already-removed',
  'capacity/backlog-full',
  'runs/already-terminal',
  'runs/parent-cancelled',
  'runs/not-lost',
  'conflict/mcp-tool',
  'hooks/already-for-user',
  'hooks/changed-meanwhile',
  'approvals/too-late',
  'approvals/changed',
  'approvals/no-rule',
  'approvals/no-tool',
  'approvals/other-rule',
  'approvals/hidden',
  'approvals/not-confirmed',
  'doubts/not-in-doubt',
  'doubts/run-ended',
  'doubts/observed',
  'doubts/other-hosts',
  'actions/in-doubt',
  'actions/not-held',
  'decisions/inside-run',
  'workspace/refused',
  'workspace/elsewhere',
  'workspace/swept',
  'workspace/no-work',
  'git/no-repository',
  'git/bare',
  'git/inside',
  'git/partial',
  'git/no-commit',
  'git/not-trusted',
  'schedules/name-taken',
  'schedules/over',
  'schedules/limit',
  'tokens/already-revoked',
  'files/exists',
  'restore/in-use',
  'restore/would-forget',
  'auth/scope',
  'auth/other-thread',
])

export function exitCodeOf(error: unknown): number {
  if (!(error instanceof HoldfastError)) return EXIT.failed
  if (error.code.startsWith('usage/')) return EXIT.usage
  if (error.code.startsWith('not-found/')) return EXIT.notFound
  return REFUSED.has(error.code) ? EXIT.refused : EXIT.failed
}

/** A shell's way to say that a signal ended a command. */
export function signalExitCode(signal: string): number {
  return 128 + ((constants.signals as Record<string, number>)[signal] ?? 0)
}
