import { HoldfastError } from '../base/errors.ts'
import { functionAround } from '../define/inside.ts'
import { OWN_LOOP } from '../define/own-loop.ts'
import type { HasOwnLoop, OwnLoop } from '../define/own-loop.ts'

/** The run that something durable is used in: the one it was given, or the function around it. */
export async function loopOf(given: object | undefined): Promise<OwnLoop> {
  const run = given ?? functionAround()
  if (run === undefined || !hasOwnLoop(run))
    throw new HoldfastError('usage/ai-sdk', 'what durable() returned was used outside of a run', {
      remedy: 'use it in a function of defineFunction, or give it the run: durable({ run, model, tools })',
    })
  return run[OWN_LOOP]()
}

const hasOwnLoop = (run: object): run is HasOwnLoop => OWN_LOOP in run

/** A tool as the model was told of it. */
export interface ToolSpec {
  readonly description: string
  readonly inputSchema: Readonly<Record<string, unknown>>
}

export interface WantedCall {
  readonly toolCallId: string
  readonly toolName: string
  /** As the model wrote it. */
  readonly input: string
}

/** The reply that wants some calls. */
export interface Wanting {
  readonly step: string
  readonly calls: readonly WantedCall[]
  readonly specs: ReadonlyMap<string, ToolSpec>
}

/** By the ids of the calls. Some providers use an id again: then the last reply with it is meant. */
const wanted = new WeakMap<OwnLoop, Map<string, Wanting>>()

export function noteWanted(loop: OwnLoop, wanting: Wanting): void {
  const known = wanted.get(loop) ?? new Map<string, Wanting>()
  wanted.set(loop, known)
  for (const { toolCallId } of wanting.calls) known.set(toolCallId, wanting)
}

const BY_HAND: Wanting = { step: 'a call by hand', calls: [], specs: new Map() }

/** Who calls a tool without a model is known by the id that he gives the call. */
export const wantingOf = (loop: OwnLoop, toolCallId: string): Wanting => wanted.get(loop)?.get(toolCallId) ?? BY_HAND
