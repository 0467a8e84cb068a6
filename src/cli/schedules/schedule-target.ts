import { resolve } from 'node:path'

import type { Ask } from '../../api/routes.ts'
import { HoldfastError } from '../../base/errors.ts'
import { harmlessVariables } from '../../base/variables.ts'
import type { Operator } from '../around/context.ts'
import { jsonOption } from '../words/json-option.ts'
import type { TargetFlags } from './schedule-flags.ts'
import { namedThread } from '../around/self.ts'

/** The words behind the name, and those of them that stand behind `--`. */
export interface Words {
  readonly all: readonly string[]
  readonly afterDashes: readonly string[] | undefined
}

/** What is to be done, as the API takes it. Of an edit it may be only where, or how long. */
type Doing = Pick<
  Ask<'schedules.add'>,
  'threadId' | 'agent' | 'text' | 'command' | 'cwd' | 'env' | 'timeout' | 'webhook' | 'method' | 'body'
>

export async function doingOf(operator: Operator, words: Words, flags: TargetFlags): Promise<Doing> {
  const { thread, agent, webhook, cwd, timeout } = flags
  const named = [thread && '--thread', agent && '--agent', webhook && '--webhook'].filter(Boolean)
  if (named.length > 1) throw twoTargets(named.join(' and '))
  refuseStray(flags)
  const text = words.all.join(' ')
  if (thread !== undefined) return { threadId: await namedThread(operator, thread), text }
  if (agent !== undefined) return { agent, text }
  if (webhook !== undefined) return webhookOf(words, flags, webhook)
  if (words.all.length > 0) return commandOf(operator, words, flags)
  return {
    ...(cwd === undefined ? {} : { cwd: folderOf(operator, cwd) }),
    ...(timeout === undefined ? {} : { timeout }),
  }
}

const twoTargets = (what: string) =>
  new HoldfastError('usage/schedule', `${what} are two answers to what is to be done`, {
    remedy: 'write a schedule for each',
  })

function refuseStray({ thread, agent, webhook, method, body, cwd, timeout }: TargetFlags): void {
  const stray = (flag: string, of: string) =>
    new HoldfastError('usage/schedule', `${flag} is for ${of}`, { remedy: `leave ${flag} out` })
  if (webhook === undefined && method !== undefined) throw stray('--method', 'a webhook')
  if (webhook === undefined && body !== undefined) throw stray('--body', 'a webhook')
  const isCommand = thread === undefined && agent === undefined && webhook === undefined
  if (!isCommand && cwd !== undefined) throw stray('--cwd', 'a command')
  if (!isCommand && timeout !== undefined) throw stray('--timeout', 'a command')
}

function webhookOf({ all }: Words, { method, body }: TargetFlags, url: string): Doing {
  if (all.length > 0) throw twoTargets('--webhook and a command')
  return {
    webhook: url,
    ...(method === undefined ? {} : { method }),
    ...(body === undefined ? {} : { body: jsonOption('--body', body, '{"key": "value"}') }),
  }
}

/** What nobody watches gets only the harmless variables of whoever made it; those of this machine are of no use elsewhere. */
function commandOf(operator: Operator, { all, afterDashes = [] }: Words, { cwd, timeout }: TargetFlags): Doing {
  // A text without --thread would else become a program that nobody has.
  if (afterDashes.length !== all.length)
    throw new HoldfastError('usage/schedule', `"${all[0] ?? ''}" belongs to nothing`, {
      remedy: 'write -- before a command, or --thread or --agent for a message',
    })
  return {
    command: [...all],
    cwd: folderOf(operator, cwd),
    ...(operator.local === undefined ? {} : { env: harmlessVariables(operator.environment.variables) }),
    ...(timeout === undefined ? {} : { timeout }),
  }
}

/** A folder here is none of the daemon's, where that is elsewhere. */
function folderOf({ local }: Operator, cwd: string | undefined): string {
  if (local !== undefined) return resolve(cwd ?? '.')
  if (cwd !== undefined) return cwd
  throw new HoldfastError('usage/schedule', 'it does not say where the command runs', {
    remedy: 'give --cwd as a whole path of the machine where the daemon is',
  })
}
