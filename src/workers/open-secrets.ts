import { resolve } from 'node:path'

import { veiled } from '../base/visible.ts'
import type { LoadedConfig } from '../config/load.ts'
import { rememberHome } from '../secrets/folders.ts'
import { gatherKnown } from '../secrets/gather.ts'
import type { Declared } from '../secrets/gather.ts'
import { saysSecret } from '../secrets/from-environment.ts'
import { keyPlace } from '../secrets/key.ts'
import { Secrets } from '../secrets/secrets.ts'
import { drawVeil } from '../secrets/veil.ts'
import { homePaths } from './home.ts'

export interface SecretPlaces {
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly store: string | undefined
  readonly config: LoadedConfig | undefined
}

/** Everything secret that this process can know; from now on none of it leaves the process. */
export function openSecrets({ home, env, store, config }: SecretPlaces): Secrets {
  const { token, recordToken } = homePaths(home)
  const known = gatherKnown({
    environment: env,
    store,
    files: { 'holdfast.token': token, 'holdfast.record-token': recordToken },
    ...(config === undefined ? {} : { declared: declaredIn(config), written: writtenIn(config) }),
  })
  drawVeil(known)
  const secrets = new Secrets(keyPlace(home, env['HOLDFAST_SECRET_KEY_FILE']), known)
  rememberHome(home, secrets)
  return secrets
}

/** What goes wrong in the background is told without them, too. */
export const discreetly = (warn: (message: string) => void) => (message: string) => warn(veiled(message))

function declaredIn({ secrets = new Map<string, Declared>(), folder }: LoadedConfig): Map<string, Declared> {
  const placed = (from: Declared) => ('file' in from ? { file: resolve(folder, from.file) } : from)
  return new Map([...secrets].map(([name, from]) => [name, placed(from)]))
}

/** What somebody wrote into the configuration itself, or meant by a variable there. */
function writtenIn({ mcpServers, notify = [], webhookSecret }: LoadedConfig): Record<string, string> {
  const servers = [...mcpServers].flatMap(([name, server]) =>
    Object.entries(server.kind === 'http' ? server.headers : server.env).map(([key, value]) => ({
      key,
      value,
      where: `mcp.${name}.${key}`,
    })),
  )
  const channels = notify.flatMap((channel, index) => {
    const value = channel.kind === 'webhook' ? channel.secret : channel.kind === 'ntfy' ? channel.token : undefined
    return value === undefined ? [] : [{ key: 'secret', value, where: `notify.${index}` }]
  })
  const signed = webhookSecret === undefined ? [] : [{ key: 'secret', value: webhookSecret, where: 'webhooks.secret' }]
  const secret = [...servers, ...channels, ...signed].filter(({ key }) => saysSecret(key))
  return Object.fromEntries(secret.map(({ where, value }) => [where, value]))
}
