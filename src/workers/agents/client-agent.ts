import type { AttemptId } from '../../base/ids.ts'
import { PRESETS, sessionName } from '../../clients/preset.ts'
import type { ClientSettings } from '../../clients/preset.ts'
import { priceOf } from '../../model/prices.ts'
import type { Prices } from '../../model/prices.ts'
import type { ClientPrice, ClientRequest } from '../../runs/run.ts'
import type { KeptSession } from '../../sessions/kept.ts'

/** An agent that is a client whose sessions and output we know. */
export interface OpenClient {
  readonly settings: ClientSettings
  /** Of the model that it was configured with. */
  readonly price?: ClientPrice
}

export function openClient(settings: ClientSettings, prices: Prices | undefined): OpenClient {
  const { name, model } = settings
  const price = model === undefined ? undefined : priceOf(`${PRESETS[name].vendor}/${model}`, prices)
  return { settings, ...(price === undefined ? {} : { price }) }
}

export interface ClientCommand {
  readonly argv: readonly [string, ...string[]]
  readonly client: ClientRequest
}

/** The command of a turn: it goes on with the session that the thread has, or begins one. */
export function clientCommand(
  program: string,
  client: OpenClient,
  attempt: AttemptId,
  kept: KeptSession | undefined,
): ClientCommand {
  const { settings } = client
  const preset = PRESETS[settings.name]
  const known = kept?.client === settings.name ? kept.sessionId : undefined
  const session = preset.namesSession ? sessionName(attempt) : undefined
  const begin = [program, ...preset.args(settings, session === undefined ? undefined : { begin: session })] as const
  const named = session === undefined ? {} : { session }
  if (known === undefined) return { argv: begin, client: { ...aboutOf(client), ...named, isNew: true } }
  const resumed = resumeCommand(program, client, known)
  return { ...resumed, client: { ...resumed.client, orElse: { argv: begin, ...named } } }
}

/** The command that goes on with this session, or fails. */
export function resumeCommand(program: string, client: OpenClient, session: string): ClientCommand {
  const argv = [program, ...PRESETS[client.settings.name].args(client.settings, { resume: session })] as const
  return { argv, client: { ...aboutOf(client), session } }
}

const aboutOf = ({ settings: { name }, price }: OpenClient) => ({
  name,
  vendor: PRESETS[name].vendor,
  ...(price === undefined ? {} : { price }),
})
