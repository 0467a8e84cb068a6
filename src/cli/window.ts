import { unlink } from 'node:fs/promises'

import { HoldfastError } from '../base/errors.ts'
import { writeFileAtomic } from '../base/files.ts'
import { processIdentity } from '../processes/identity.ts'
import { homePaths } from '../workers/home.ts'
import type { Context } from './context.ts'

export interface Window {
  readonly url: string
  /** What a person opens: with the token behind `#`, which a browser keeps to itself. */
  readonly signInUrl: string
  close(): Promise<void>
}

/** Opens the daemon's door and says in the home folder where it is. A file that a killed daemon left is overwritten. */
export async function openWindow({ runtime, environment, output }: Context, port?: number): Promise<Window> {
  // Loaded here, because every other command starts faster without it.
  const [{ startServer, USUAL_PORT }, { readToken }] = await Promise.all([
    import('../server/server.ts'),
    import('../server/token.ts'),
  ])
  const paths = homePaths(runtime.home)
  const token = environment.token ?? (await readToken(paths.token, runtime.random, output.note))
  const server = await startServer(runtime, { port, token, warn: output.note })
  const { url, instance } = server
  if (server.moved) output.note(`port ${USUAL_PORT} is taken by another program, so this daemon has one of its own`)
  // The instance is also in the answer of /api/v1/health: who finds another there must not show it the token.
  const place = { url, pid: process.pid, startTime: processIdentity()?.startTime, instance }
  await writeFileAtomic(paths.daemon, `${JSON.stringify(place)}\n`, { mode: 0o600, durable: false })
  return {
    url,
    signInUrl: `${url}/#token=${encodeURIComponent(token)}`,
    async close() {
      await unlink(paths.daemon).catch(() => {})
      await server.close()
    },
  }
}

export function portOption(given: string): number {
  const port = Number(given)
  if (/^\d+$/.test(given) && port <= 65_535) return port
  throw new HoldfastError('usage/port', '--port wants a number from 0 to 65535', { remedy: 'as in --port 4780' })
}
