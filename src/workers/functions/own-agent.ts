import type { Clock } from '../../base/clock.ts'
import type { Config } from '../../config/config.ts'
import { openSigner } from '../../notify/open.ts'
import type { Store } from '../../store/store.ts'
import type { CommandPlace } from '../../tools/supervised-command.ts'
import type { OpenAgent } from '../agents/execute-agent.ts'
import { webhookAgent } from '../agents/webhook-agent.ts'

interface OwnAgentPorts {
  readonly store: Store
  readonly clock: Clock
  readonly place: CommandPlace
}

/** The one agent that is there without being configured. */
export function openOwnAgent(config: Config | undefined, { store, clock, place }: OwnAgentPorts): OpenAgent {
  const { http = {}, policy = [], approvalMs, webhookSecret } = config ?? {}
  // Looked up when something is to be signed: other commands than the daemon need no secret.
  const sign = (body: string) => openSigner(webhookSecret, clock, place.env)?.(body) ?? {}
  return webhookAgent({
    store,
    policy,
    http: { ...http, sign },
    ...(approvalMs === undefined ? {} : { approvalMs }),
  })
}
