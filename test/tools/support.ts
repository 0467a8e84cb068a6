import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import type { ActionId, RunId, ThreadId } from '../../src/base/ids.ts'
import type { ToolContext, ToolOutcome } from '../../src/loop/ports.ts'
import { commandTool, type CommandToolDefinition } from '../../src/tools/command-tool.ts'
import { codeCache, freshFolder, newMark } from '../processes/support.ts'

export { freshFolder, newMark, processesWith, until, within } from '../processes/support.ts'

export const fixture = (name: string) => join(import.meta.dirname, 'fixtures', name)

export const place = { cwd: '/', env: { PATH: process.env.PATH ?? '/usr/bin:/bin', SECRET_KEY: 'planted' }, codeCache }

export interface TryOf extends ToolContext {
  readonly controller: AbortController
  abort(reason?: unknown): void
}

/** The context of one try of one action, with the way to end it. */
export function newContext(more: Partial<ToolContext> = {}): TryOf {
  const controller = new AbortController()
  return {
    signal: controller.signal,
    clock: systemClock,
    key: `act_${newMark()}` as ActionId,
    threadId: 'thr_1' as ThreadId,
    runId: 'run_1' as RunId,
    folder: freshFolder(),
    mark: newMark(),
    fence: 1,
    deadline: Date.now() + 3_600_000,
    ...more,
    controller,
    abort: (reason) => controller.abort(reason),
  }
}

const DEFINITION: CommandToolDefinition = {
  effect: 'write',
  description: 'under test',
  input: { type: 'object' },
  repeat: 'once',
  command: ['true'],
  idempotent: false,
  timeoutMs: 30_000,
}

type More = Partial<CommandToolDefinition> & { readonly graceMs?: number }

export function toolOf({ graceMs, ...definition }: More) {
  return commandTool('tool', { ...DEFINITION, ...definition }, graceMs === undefined ? place : { ...place, graceMs })
}

export const script = (text: string, ...args: string[]) => ['/bin/sh', '-c', text, 'sh', ...args] as const

export const errorOf = (outcome: ToolOutcome | { kind: string }): string => ('error' in outcome ? outcome.error : '')

/** The ledger of the tool in `fixtures/ledger-tool.mjs`: one line for each effect. */
export class Ledger {
  readonly file = `${freshFolder()}.ledger`

  verb(verb: string): readonly [string, ...string[]] {
    return [process.execPath, fixture('ledger-tool.mjs'), verb, this.file]
  }

  entries(): string[] {
    return existsSync(this.file) ? readFileSync(this.file, 'utf8').split('\n').filter(Boolean) : []
  }

  /** The keys for which an append has begun, whether or not it got to its effect. */
  begun(): boolean {
    return existsSync(`${this.file}.begun`)
  }
}
