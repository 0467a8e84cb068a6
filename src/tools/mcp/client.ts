import type { Client } from '@modelcontextprotocol/client'
import type { Clock } from '../../base/clock.ts'
import { formatDuration } from '../../base/duration.ts'
import type { Randomness } from '../../base/ids.ts'
import { ownVersion } from '../../base/version.ts'
import type { CommandPlace } from '../supervised-command.ts'
import type { Ending } from './connection.ts'
import { MCP_LIMITS } from './limits.ts'

/** What opening a connection needs. */
export interface Opening {
  readonly clock: Clock
  readonly random: Randomness
  readonly place: CommandPlace
  /** A folder for the folders of servers, under the home folder. */
  readonly folder: string
  /** The server's place in the configuration. */
  readonly where: string
  /** Gives up on the greeting. */
  readonly signal: AbortSignal
  /** The server is known to be of the older kind, or died of the newer greeting. */
  readonly legacy: boolean
}

/** Loaded when a server is first used: it takes some 150 ms, which agents without one need not wait for. */
export async function newClient(legacy: boolean): Promise<Client> {
  const { Client: McpClient } = await import('@modelcontextprotocol/client')
  // No capabilities: a server that wants to ask something back is told that nobody answers.
  return new McpClient(
    { name: 'holdfast', version: ownVersion() },
    {
      capabilities: {},
      inputRequired: { autoFulfill: false },
      versionNegotiation: legacy ? { mode: 'legacy' } : { mode: 'auto', probe: { timeoutMs: MCP_LIMITS.probeMs } },
    },
  )
}

/** The greeting's own limits: our time, our signal, and the end of what is greeted. */
export async function within(opening: Opening, greeting: Promise<void>, ended: Promise<Ending>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(new Error('nobody waits for it any more'))
  const late = `it did not answer within ${formatDuration(MCP_LIMITS.handshakeMs)}`
  const disarm = opening.clock.after(MCP_LIMITS.handshakeMs, () => reject(new Error(late)), { ref: true })
  opening.signal.addEventListener('abort', onAbort, { once: true })
  if (opening.signal.aborted) onAbort()
  void ended.then(({ why }) => reject(new Error(why)))
  greeting.catch(() => {})
  try {
    await Promise.race([promise, greeting])
  } finally {
    disarm()
    opening.signal.removeEventListener('abort', onAbort)
  }
}
