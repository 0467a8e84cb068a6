import { resolve } from 'node:path'

import { HoldfastError } from '../base/errors.ts'
import { harmlessVariables } from '../base/variables.ts'
import { knownAgents } from '../runs/worker.ts'
import { commandOf, messageTo, newThreadOf, webhookTo } from '../schedule/request.ts'
import type { Target } from '../schedule/schedule.ts'
import type { Context } from './context.ts'
import type { TargetFlags } from './schedule-flags.ts'
import { threadOrSelf } from './self.ts'

/** The words behind the name, and those of them that stand behind `--`. */
export interface Words {
  readonly all: readonly string[]
  readonly afterDashes: readonly string[] | undefined
}

export const noTarget = () =>
  new HoldfastError('usage/schedule', 'it does not say what is to be done', {
    remedy: 'write -- COMMAND, --thread THREAD TEXT, --agent AGENT TEXT or --webhook URL',
  })

/** Undefined: nothing of it was said. */
export async function targetOf(context: Context, words: Words, flags: TargetFlags): Promise<Target | undefined> {
  const { thread, agent, webhook } = flags
  const named = [thread && '--thread', agent && '--agent', webhook && '--webhook'].filter(Boolean)
  if (named.length > 1) throw twoTargets(named.join(' and '))
  refuseStray(flags)
  const text = words.all.join(' ')
  if (thread !== undefined) return messageTo(await threadOrSelf(context, thread), text)
  if (agent !== undefined) return newThreadOf(await knownAgent(context, agent), text)
  if (webhook !== undefined) return webhookOf(words, flags, webhook)
  return words.all.length === 0 ? undefined : commandTarget(context, words, flags)
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

function webhookOf({ all }: Words, { method, body }: TargetFlags, url: string): Target {
  if (all.length > 0) throw twoTargets('--webhook and a command')
  return webhookTo({
    url,
    ...(method === undefined ? {} : { method }),
    ...(body === undefined ? {} : { body: jsonOf(body) }),
  })
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new HoldfastError('usage/schedule', 'the body is not JSON', {
      remedy: 'quote it: \'{"key":"value"}\'',
      cause,
    })
  }
}

/** What nobody watches gets only the harmless variables of whoever made it. */
function commandTarget(
  { environment }: Context,
  { all, afterDashes = [] }: Words,
  { cwd, timeout }: TargetFlags,
): Target {
  // A text without --thread would else become a program that nobody has.
  if (afterDashes.length !== all.length)
    throw new HoldfastError('usage/schedule', `"${all[0] ?? ''}" belongs to nothing`, {
      remedy: 'write -- before a command, or --thread or --agent for a message',
    })
  return commandOf({
    argv: all,
    cwd: resolve(cwd ?? '.'),
    env: harmlessVariables(environment.variables),
    ...(timeout === undefined ? {} : { timeout }),
  })
}

/** Only where or how long: the command stays. */
export function adjusted(target: Target, { cwd, timeout }: TargetFlags): Target | undefined {
  if (cwd === undefined && timeout === undefined) return undefined
  if (target.kind !== 'command')
    throw new HoldfastError('usage/schedule', '--cwd and --timeout are for a command', { remedy: 'leave them out' })
  const changed = { ...target, cwd: cwd === undefined ? target.cwd : resolve(cwd) }
  return timeout === undefined ? changed : commandOf({ ...changed, timeout })
}

/** One of the configuration, or of a worker that is there. */
async function knownAgent({ runtime }: Context, agent: string): Promise<string> {
  const seen = await runtime.store.read(knownAgents)
  const known = [...new Set([...runtime.agents, ...seen.map(({ agent }) => agent)])].toSorted()
  if (known.includes(agent)) return agent
  const named = known.filter((name) => !name.includes(':'))
  throw new HoldfastError('not-found/agent', `there is no agent "${agent}"`, {
    remedy: named.length === 0 ? 'the configuration has none' : `there are: ${named.join(', ')}`,
  })
}
