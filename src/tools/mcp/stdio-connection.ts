import { resolve } from 'node:path'
import type { Client } from '@modelcontextprotocol/client'
import { sleep } from '../../base/clock.ts'
import { plainVariables } from '../../base/variables.ts'
import { removeRemains } from '../../processes/attempt-folder.ts'
import { describeEnd } from '../../processes/command.ts'
import type { CommandSpec, OutputText } from '../../processes/command.ts'
import { startCommand } from '../../processes/start-command.ts'
import type { Outcome, Supervised } from '../../processes/supervised.ts'
import { newClient, within } from './client.ts'
import type { Opening } from './client.ts'
import { Connection } from './connection.ts'
import type { Call, Ending, Wire } from './connection.ts'
import type { StdioServer } from './definition.ts'
import { newServerFolder } from './leftovers.ts'
import { MCP_LIMITS } from './limits.ts'
import { StdioTransport } from './stdio-transport.ts'
import { withVariables } from './variables.ts'

/** It ended by itself before it was greeted. */
export class ServerEnded extends Error {}

/**
 * Starts a server and greets it. It is on a leash: whatever becomes of this process, its supervisor ends every process
 * of the server. When this rejects, nothing of it is left.
 */
export async function openStdio(server: StdioServer, opening: Opening): Promise<Connection> {
  const { place, clock } = opening
  const env = { ...plainVariables(place.env), ...withVariables(`${opening.where}.env`, server.env, place.env) }
  const { folder, mark } = await newServerFolder(opening)
  const transport = new StdioTransport()
  const cwd = resolve(place.cwd, server.cwd ?? '.')
  const command = await startCommand(
    folder,
    specOf(server, { cwd, env, mark, graceMs: place.graceMs ?? MCP_LIMITS.graceMs }),
    {
      stdin: 'pipe',
      onStdout: (chunk) => transport.take(chunk),
      ...(place.codeCache === undefined ? {} : { codeCache: place.codeCache }),
    },
  ).catch((error: unknown) => removeRemains(folder).then(() => Promise.reject(error)))
  transport.attach(command)
  const wire = new StdioWire(command, transport, folder, opening)
  const client = await newClient(opening.legacy)
  wire.client = client
  try {
    await within(opening, client.connect(transport, { timeout: MCP_LIMITS.handshakeMs }), wire.ended)
  } catch (error) {
    await wire.end('it was not greeted')
    throw await wire.explain(error)
  }
  return new Connection(client, wire, clock)
}

const specOf = (server: StdioServer, rest: Pick<CommandSpec, 'cwd' | 'env' | 'mark' | 'graceMs'>): CommandSpec => ({
  argv: server.command,
  ...rest,
  timeoutMs: null,
  leash: true,
  // What it says is read as it comes; of its complaints the end is kept.
  output: { headBytes: 0, tailBytes: MCP_LIMITS.errorBytes, spillBytes: 0 },
})

class StdioWire implements Wire {
  readonly ended: Promise<Ending>
  usable = true
  client: Client | undefined
  readonly #command: Supervised
  readonly #transport: StdioTransport
  readonly #opening: Opening
  /** Why we ended it, which is not what its processes would say. */
  #why: string | undefined
  #complaints = ''

  constructor(command: Supervised, transport: StdioTransport, folder: string, opening: Opening) {
    this.#command = command
    this.#transport = transport
    this.#opening = opening
    transport.onBreach = (why) => void this.end(why)
    this.ended = command.ended.then(async (outcome) => {
      this.usable = false
      this.#complaints = complaints(outcome)
      const told = this.#why !== undefined
      const why = `${this.#why ?? howItEnded(outcome)}${this.#complaints}`
      transport.onclose?.()
      await removeRemains(folder).catch(() => {})
      return { why, told }
    })
  }

  async end(why: string, how: 'cancelled' | 'lease-lost' = 'cancelled'): Promise<void> {
    this.usable = false
    this.#why ??= why
    this.#command.stop(how)
    await this.ended
  }

  /** A failed greeting is best explained by how the server ended and what it printed before. */
  async explain(error: unknown): Promise<Error> {
    const { why, told } = await this.ended
    const what = error instanceof Error ? error.message : String(error)
    return told ? new Error(`${what}${this.#complaints}`, { cause: error }) : new ServerEnded(why)
  }

  /**
   * By the protocol a server that heard the cancel says no more about the call, and one that did not hear it neither:
   * silence does not prove that the tool has stopped. So a moment for an answer, and then its processes are ended.
   */
  async stopCall(call: Call, answer: Parameters<Wire['stopCall']>[1]): ReturnType<Wire['stopCall']> {
    const lost = call.signal.reason === 'lease-lost'
    if (!lost) {
      await this.#sendCancel(call)
      const over = new AbortController()
      const { clock, place } = this.#opening
      const patience = sleep(clock, Math.min(MCP_LIMITS.cancelMs, place.graceMs ?? Infinity), over.signal)
      const late = await Promise.race([answer, patience])
      over.abort()
      if (late !== undefined) return late
    }
    await this.end('it was stopped because a call of it was', lost ? 'lease-lost' : 'cancelled')
    return undefined
  }

  async #sendCancel({ key }: Call): Promise<void> {
    const requestId = this.#transport.requestOf(key)
    if (requestId === undefined) return
    const notification = { method: 'notifications/cancelled', params: { requestId, reason: 'cancelled' } } as const
    await this.client?.notification(notification).catch(() => {})
  }
}

function howItEnded(outcome: Outcome): string {
  if (outcome.kind === 'ended') return describeEnd(outcome.end)
  return outcome.kind === 'never-started' ? 'it was not started' : 'its supervisor was lost'
}

function complaints(outcome: Outcome): string {
  const text = outcome.kind === 'ended' ? ends(outcome.end.stderr) : ''
  return text === '' ? '' : `; it had written on standard error:\n${text}`
}

const ends = ({ head, tail }: OutputText) => `${head}${tail}`.trim()
