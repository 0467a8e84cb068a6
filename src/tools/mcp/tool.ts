import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describeError } from '../../base/errors.ts'
import { createFileOnce, errorCode } from '../../base/files.ts'
import type { JsonSchema, Tool, ToolContext, ToolOutcome } from '../../loop/ports.ts'
import { identityOf } from '../identity.ts'
import { schemaProblem, validateInput } from '../schema.ts'
import { reasonOf, timeLeft } from '../supervised-command.ts'
import type { Connection, ServerTool } from './connection.ts'
import type { McpServerRules } from './definition.ts'
import { modelToolName } from './names.ts'
import { outcomeOfCall } from './outcome.ts'
import { seen } from './pins.ts'
import type { McpServers } from './servers.ts'

/** A tool of a server, as it was accepted. */
export interface AcceptedTool {
  readonly server: string
  readonly definition: ServerTool
  readonly digest: string
}

export function mcpTool(accepted: AcceptedTool, servers: McpServers): Tool {
  const { server, definition } = accepted
  const rules = servers.definition(server)
  const { effect } = effectOf(definition, rules)
  const repeat = rules.repeat[definition.name] ?? (effect === 'write' ? 'once' : 'each')
  const once = effect === 'write' && repeat === 'once' ? rules.once[definition.name] : undefined
  const idempotent = rules.idempotent.includes(definition.name)
  const machine: Machine = { accepted, servers, effect, idempotent, timeoutMs: rules.timeoutMs }
  return {
    name: modelToolName(server, definition.name),
    description: definition.description ?? '',
    inputSchema: definition.inputSchema,
    effect,
    repeat,
    ...(once === undefined ? {} : { once }),
    definition: servers.whichOne(server),
    timeoutMs: rules.timeoutMs,
    idempotent,
    identity: (input) => identityOf(input, rules.identity[definition.name]),
    validate: (input) => validateInput(knownSchema(definition.inputSchema), input),
    perform: (input, context) => perform(machine, input, context),
    recover: (context) => recover(machine, context),
  }
}

/**
 * Who says what a tool does to the world. A server's word never makes it a read: that is for the operator to say. It can
 * make one of the operator's reads a write again.
 */
export function effectOf(
  { name, annotations }: ServerTool,
  rules: Pick<McpServerRules, 'effects'>,
): { readonly effect: 'read' | 'write'; readonly tightened: boolean } {
  const configured = rules.effects[name] ?? 'write'
  const writes = annotations?.['readOnlyHint'] === false || annotations?.['destructiveHint'] === true
  return configured === 'read' && writes
    ? { effect: 'write', tightened: true }
    : { effect: configured, tightened: false }
}

/** A schema that our validator cannot use is left to the server, which validates anyway. */
const knownSchema = (schema: JsonSchema): JsonSchema =>
  schemaProblem(schema) === undefined ? schema : { type: 'object' }

interface Machine {
  readonly accepted: AcceptedTool
  readonly servers: McpServers
  readonly effect: 'read' | 'write'
  readonly idempotent: boolean
  readonly timeoutMs: number
}

async function perform(machine: Machine, input: unknown, context: ToolContext): Promise<ToolOutcome> {
  const { servers, accepted } = machine
  if (context.signal.aborted) return notBegun(`${reasonOf(context.signal)} before it was started`)
  try {
    return await servers.use(accepted.server, context.runId, context.signal, (connection) =>
      callOn(connection, machine, input, context),
    )
  } catch (error) {
    if (errorCode(error) !== 'tools/mcp-unavailable') throw error
    const aborted = context.signal.aborted ? `${reasonOf(context.signal)} before it was started; ` : ''
    return notBegun(`${aborted}${describeError(error)}`)
  }
}

/** Not a byte was sent: of an earlier try this says nothing. */
const notBegun = (error: string): ToolOutcome => ({ kind: 'failed', error, unbegun: true })

async function callOn(
  connection: Connection,
  machine: Machine,
  input: unknown,
  context: ToolContext,
): Promise<ToolOutcome> {
  const refusal = await refusalBy(connection, machine).catch(describeError)
  if (refusal !== undefined) return notBegun(refusal)
  // A read may be performed twice, so nobody has to know whether it was.
  const mine = machine.effect === 'read' || (await claimTry(context, 'sent')) === 'won'
  if (!mine) return notBegun('another worker has taken it over')
  const { signal, key } = context
  const call = {
    tool: machine.accepted.definition,
    input,
    key,
    signal,
    timeoutMs: timeLeft(machine.timeoutMs, context),
  }
  const called = await connection.call(call)
  const outcome = outcomeOfCall(called, machine)
  if (called.kind === 'answered') machine.servers.succeeded(machine.accepted.server)
  if (called.kind !== 'error' || !wasLost(called.error) || outcome.kind === 'done') return outcome
  const { why } = await connection.ended
  const error = `the server ended while it was under way: ${why.replaceAll('\0', '')}`
  // Its processes are dead, where it has any; what an address goes on with nobody here can see.
  const isOver = outcome.kind === 'in-doubt' && machine.servers.definition(machine.accepted.server).kind === 'stdio'
  return { ...outcome, error, ...(isOver ? { over: true } : {}) }
}

const wasLost = (error: unknown) => (error as { code?: unknown } | null)?.code === 'CONNECTION_CLOSED'

/** The server may have been started anew since it was asked, and be another one by now. */
async function refusalBy(connection: Connection, { accepted }: Machine): Promise<string | undefined> {
  const { server, definition, digest } = accepted
  const now = (await connection.listing()).find(({ name }) => name === definition.name)
  if (now === undefined) return `the MCP server "${server}" has no tool "${definition.name}" any more`
  return seen(now).digest === digest ? undefined : changedSentence(server, definition.name)
}

export const changedSentence = (server: string, tool: string): string =>
  `the MCP server "${server}" describes its tool "${tool}" differently from what was accepted, so it is not called; a person has to look at it: holdfast mcp-tools accept ${server} ${tool}`

/**
 * The request's intent, on disk before a byte of it is sent, once: either the worker that performs it writes this, or the
 * one that takes over and thereby proves that it was never sent and never will be, to whoever takes over from it too.
 */
async function claimTry({ folder }: ToolContext, how: 'sent' | 'fenced'): Promise<'won' | 'lost'> {
  const file = join(folder, 'request')
  if ((await createFileOnce(file, how)) === 'created') return 'won'
  return how === 'fenced' && (await readFile(file, 'utf8')) === how ? 'won' : 'lost'
}

/** The server ended with its worker. What it had done by then it can tell nobody. */
async function recover({ servers }: Machine, context: ToolContext) {
  await servers.endLeftovers()
  if ((await claimTry(context, 'fenced')) === 'won') return { kind: 'never-started' } as const
  return { kind: 'in-doubt', error: 'its worker died while the server was at work on it' } as const
}
