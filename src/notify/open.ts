import type { Clock } from '../base/clock.ts'
import { HoldfastError } from '../base/errors.ts'
import { withReferences } from '../base/variables.ts'
import type { Channel } from './channel.ts'
import { desktopChannel } from './desktop.ts'
import { ntfyChannel, signatureOf, webhookChannel } from './post.ts'

/** As the configuration has it: secrets as `${NAME}` of a variable. */
export type ChannelConfig =
  | { readonly kind: 'webhook'; readonly url: string; readonly secret: string }
  | { readonly kind: 'ntfy'; readonly url: string; readonly token?: string }
  | { readonly kind: 'desktop' }

type Variables = Readonly<Record<string, string | undefined>>

/** A secret that is not there is said when the daemon starts, not when a person should have been told. */
export function openChannels(configs: readonly ChannelConfig[], clock: Clock, variables: Variables): Channel[] {
  return configs.map((config) => {
    if (config.kind === 'webhook')
      return webhookChannel({ url: config.url, secret: filled('notify', 'secret', config.secret, variables) }, clock)
    if (config.kind === 'desktop') return desktopChannel(clock, defined(variables))
    const { url, token } = config
    return ntfyChannel({ url, ...(token === undefined ? {} : { token: filled('notify', 'token', token, variables) }) })
  })
}

/** Proves to the receivers of schedules' webhooks who sends them. */
export function openSigner(secret: string | undefined, clock: Pick<Clock, 'now'>, variables: Variables) {
  if (secret === undefined) return undefined
  const known = filled('webhooks', 'secret', secret, variables)
  return (body: string) => signatureOf(body, known, clock)
}

const filled = (place: string, key: string, value: string, variables: Variables): string =>
  withReferences(value, (name) => {
    const found = variables[name]
    if (found !== undefined && found !== '') return found
    throw new HoldfastError('usage/config', `"${place}" needs the variable ${name} for its ${key}, which is not set`, {
      remedy: `set ${name} in the environment of the daemon`,
    })
  })

const defined = (variables: Variables): Record<string, string> =>
  Object.fromEntries(Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined))
