import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'
import { z } from 'zod'

import { createRuntime, defineAgent, defineTool } from '../../src/index.ts'
import type { AgentDefinition, Runtime } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import type { Script } from '../../src/testing/index.ts'
import { temporaryFolder } from '../support/engines.ts'

/** A ledger that a tool of this process writes to. */
export class Notebook {
  readonly file = join(temporaryFolder(), 'ledger.txt')

  readonly tool = defineTool({
    name: 'note',
    description: 'Append one entry',
    effect: 'write',
    input: z.object({ entry: z.string() }),
    run: async ({ entry }, signal, { key }) => {
      signal.throwIfAborted()
      appendFileSync(this.file, `${entry} ${key}\n`)
      return { entry }
    },
  })

  entries(): string[] {
    if (!existsSync(this.file)) return []
    return readFileSync(this.file, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(' ')[0]!)
  }
}

export const noting = (...entries: readonly string[]) => ({
  toolCalls: entries.map((entry) => ({ tool: 'note', input: { entry } })),
})

export const clerk = (replies: Script['replies'], tools: NonNullable<AgentDefinition['tools']> = []): AgentDefinition =>
  defineAgent({
    name: 'clerk',
    model: scriptedModel({ replies }),
    system: 'You keep the ledger.',
    tools,
    doubt: 'tell',
  })

interface Opening {
  readonly home?: string
  readonly store?: string
  readonly policy?: Parameters<typeof createRuntime>[0]['policy']
}

/** A runtime of one agent, closed when the test is over, and what it warned of. */
export async function open(agent: AgentDefinition, { policy = [{ decision: 'allow' }], home, ...more }: Opening = {}) {
  const warnings: string[] = []
  const runtime: Runtime = await createRuntime({
    home: home ?? join(temporaryFolder(), 'home'),
    agents: [agent],
    warn: (message) => warnings.push(message),
    policy,
    ...more,
  })
  onTestFinished(() => runtime.close())
  return { runtime, warnings }
}
