import { readFileSync } from 'node:fs'
import { unlink } from 'node:fs/promises'
import { resolve } from 'node:path'

import type { Command } from 'commander'

import { HoldfastError } from '../../base/errors.ts'
import { errorCode, writeFileAtomic } from '../../base/files.ts'
import { tokenDigest } from '../../control/tokens.ts'
import { CLIENT_NAMES } from '../../hooks/install/client.ts'
import { statusOf } from '../../hooks/install/status.ts'
import { processIdentity } from '../../processes/identity.ts'
import type { KeptToken } from '../../server/credentials.ts'
import { tokenOfDigest } from '../../tokens/token.ts'
import { homePaths } from '../../workers/home.ts'
import type { Context } from '../around/context.ts'
import { questionOf } from '../clients/hooks.ts'

export interface WindowFlags {
  readonly port?: number
  readonly bind?: string
  readonly name?: readonly string[]
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly insecureBind?: boolean
  readonly socket?: string
}

export interface Window {
  readonly url: string
  /** What a person opens: with a code behind `#`, which signs one browser in and is then used up. */
  signInUrl(): string
  close(): Promise<void>
}

export const windowOptions = (command: Command): Command =>
  command
    .option('--port <port>', 'where the window is (default: 4780, or a free one; 0: any that is free)', portOption)
    .option('--socket <path>', 'a unix socket too, for this user only')
    .option('--bind <address>', 'an address that others can reach; needs --tls-cert and --tls-key, or --insecure-bind')
    .option('--name <name...>', 'a name under which it is reached there; no other is answered')
    .option('--tls-cert <file>', 'a certificate, as PEM')
    .option('--tls-key <file>', 'and its key')
    .option('--insecure-bind', 'listen there without encryption: everybody on the way can read the token')

/** Opens the daemon's door and says in the home folder where it is. A file that a killed daemon left is overwritten. */
export async function openWindow(context: Context, flags: WindowFlags): Promise<Window> {
  const { runtime, environment, output } = context
  const place = placeOf(flags)
  // Loaded here, because every other command starts faster without it.
  const { startServer, USUAL_PORT } = await import('../../server/server.ts')
  const paths = homePaths(runtime.home)
  const server = await startServer({
    ...place,
    port: flags.port,
    runtime,
    kept: await keptTokens(context),
    warn: output.note,
    hookStatus: () => statusOf(questionOf(environment, CLIENT_NAMES)),
  })
  const { url, instance } = server
  if (server.moved) output.note(`port ${USUAL_PORT} is taken by another program, so this daemon has one of its own`)
  // The instance is also in the answer of /api/v1/health: who finds another there must not show it the token.
  const daemon = { url, pid: process.pid, startTime: processIdentity()?.startTime, instance }
  await writeFileAtomic(paths.daemon, `${JSON.stringify(daemon)}\n`, { mode: 0o600, durable: false })
  return {
    url,
    signInUrl: () => server.signInUrl(),
    async close() {
      await unlink(paths.daemon).catch(() => {})
      await server.close()
    },
  }
}

/** The owner's, and one for hooks that can do nothing but tell. */
async function keptTokens({ runtime, environment, output }: Context): Promise<KeptToken[]> {
  const { makeTokenFile, readTokenFile } = await import('../../server/token.ts')
  const paths = homePaths(runtime.home)
  await makeTokenFile(paths.recordToken, runtime.random, output.note)
  const hooks: KeptToken = { by: 'a hook', scopes: ['record'], read: () => readTokenFile(paths.recordToken) }
  const given = environment.token
  // One that was made for somebody keeps its own scope, whoever starts the daemon with it in the environment.
  const isOurs = given !== undefined && (await runtime.store.read(tokenOfDigest, tokenDigest(given))) === undefined
  if (given !== undefined && isOurs && !(await isSameAs(given, hooks))) {
    return [{ by: 'the owner', scopes: ['admin'], read: () => Promise.resolve(given) }, hooks]
  }
  await makeTokenFile(paths.token, runtime.random, output.note)
  return [{ by: 'the owner', scopes: ['admin'], read: () => readTokenFile(paths.token) }, hooks]
}

const isSameAs = async (given: string, { read }: KeptToken) => (await read()) === given

/** A wider door has a lock, or somebody said that they know what they are doing. A token is needed at every one. */
function placeOf({ bind, name, tlsCert, tlsKey, insecureBind, socket }: WindowFlags) {
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw new HoldfastError('usage/tls', '--tls-cert and --tls-key belong together', { remedy: 'give both' })
  }
  const tls = tlsCert === undefined || tlsKey === undefined ? undefined : { cert: pem(tlsCert), key: pem(tlsKey) }
  if (bind !== undefined && tls === undefined && insecureBind !== true) {
    throw new HoldfastError('usage/bind', `at ${bind} everybody on the way could read the token`, {
      remedy: 'give --tls-cert and --tls-key, or say --insecure-bind; a tunnel (ssh -L) needs neither',
    })
  }
  return {
    ...(bind === undefined ? {} : { bind }),
    ...(name === undefined ? {} : { names: name }),
    ...(tls === undefined ? {} : { tls }),
    ...(socket === undefined ? {} : { socket: resolve(socket) }),
  }
}

function pem(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new HoldfastError('usage/tls', `${path} cannot be read: ${errorCode(cause) ?? 'no file'}`, {
      remedy: 'name a file with PEM in it',
      cause,
    })
  }
}

function portOption(given: string): number {
  const port = Number(given)
  if (/^\d+$/.test(given) && port <= 65_535) return port
  throw new HoldfastError('usage/port', '--port wants a number from 0 to 65535', { remedy: 'as in --port 4780' })
}
