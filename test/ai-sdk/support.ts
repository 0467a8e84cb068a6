import { join } from 'node:path'

import { tool } from 'ai'
import { onTestFinished } from 'vitest'
import { z } from 'zod'

import { createRuntime } from '../../src/index.ts'
import type { FunctionDefinition, RuntimeOptions } from '../../src/index.ts'
import { temporaryFolder } from '../support/engines.ts'

/** A tool that writes what it is told into a list. */
export const noting = (notes: string[], before: (entry: string, signal?: AbortSignal) => unknown = () => {}) =>
  tool({
    description: 'Notes one thing',
    inputSchema: z.object({ entry: z.string() }),
    execute: async ({ entry }, { abortSignal }) => {
      await before(entry, abortSignal)
      notes.push(entry)
      return { noted: entry }
    },
  })

export const ALLOWED: RuntimeOptions['policy'] = [{ decision: 'allow' }]

interface Opening {
  readonly home?: string
  readonly store?: string
  readonly policy?: RuntimeOptions['policy']
  readonly telemetry?: RuntimeOptions['telemetry']
}

export async function open(functions: readonly FunctionDefinition[], { home, ...more }: Opening = {}) {
  const warnings: string[] = []
  const runtime = await createRuntime({
    home: home ?? join(temporaryFolder(), 'home'),
    agents: functions,
    warn: (message) => warnings.push(message),
    ...more,
  } as RuntimeOptions)
  onTestFinished(() => runtime.close())
  await runtime.start()
  return { runtime, warnings }
}
