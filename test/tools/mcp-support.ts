import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

import { systemClock } from '../../src/base/clock.ts'
import type { Clock } from '../../src/base/clock.ts'
import type { RunId } from '../../src/base/ids.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import type { Tool, ToolOutcome } from '../../src/loop/ports.ts'
import type { Store } from '../../src/store/store.ts'
import type { McpServerDefinition, McpServerRules } from '../../src/tools/mcp/definition.ts'
import { readSelection } from '../../src/tools/mcp/definition.ts'
import { openMcpTools } from '../../src/tools/mcp/open-tools.ts'
import { McpServers } from '../../src/tools/mcp/servers.ts'
import { engines } from '../support/engines.ts'
import { fixture, freshFolder, newContext, place, type TryOf } from './support.ts'

const RULES: McpServerRules = { timeoutMs: 30_000, effects: {}, repeat: {}, once: {}, identity: {}, idempotent: [] }

export type Rules = Partial<McpServerRules>

/** A folder with what the servers leave in it, and this process' side of them. */
export class McpWorld {
  readonly folder = freshFolder()
  readonly warnings: string[] = []
  readonly store: Store
  readonly definitions = new Map<string, McpServerDefinition>()
  servers: McpServers

  private constructor(store: Store) {
    mkdirSync(this.folder, { recursive: true })
    this.store = store
    this.servers = this.anotherProcess()
  }

  static async open(): Promise<McpWorld> {
    return new McpWorld(await (await engines[0]!.database()).open())
  }

  /** The same servers as another process would have them. */
  anotherProcess(variables: Record<string, string> = {}, clock: Clock = systemClock): McpServers {
    const { definitions } = this
    const warn = (message: string) => void this.warnings.push(message)
    const briefly = { ...place, env: { ...place.env, ...variables }, graceMs: 300 }
    const folder = join(this.folder, 'mcp')
    const servers = new McpServers({ definitions, clock, random, warn, place: briefly, folder })
    this.servers = servers
    onTestFinished(servers.close.bind(servers))
    return servers
  }

  polite(rules: Rules = {}): this {
    const command = [process.execPath, fixture('mcp-server.mjs'), join(this.folder, 'ledger')] as const
    this.definitions.set('polite', { kind: 'stdio', command, env: {}, ...RULES, ...rules })
    return this
  }

  rude(manners: readonly string[] = [], rules: Rules = {}): this {
    const command = [process.execPath, fixture('rude-mcp-server.mjs'), this.folder, ...manners] as const
    this.definitions.set('rude', { kind: 'stdio', command, env: {}, ...RULES, ...rules })
    return this
  }

  http(url: string, headers: Record<string, string> = { authorization: 'Bearer t0ken' }, rules: Rules = {}): this {
    this.definitions.set('web', { kind: 'http', url, headers, ...RULES, ...rules })
    return this
  }

  async tools(names: readonly string[], run: { resumed?: boolean; signal?: AbortSignal } = {}) {
    const selections = names.map((name) => readSelection(name)!)
    const ports = { servers: this.servers, store: this.store, warn: (text: string) => void this.warnings.push(text) }
    const whose = { id: 'run_1', resumed: run.resumed ?? false }
    return openMcpTools(selections, ports, whose, run.signal ?? new AbortController().signal)
  }

  async tool(selection: string): Promise<Tool> {
    const [tool] = (await this.tools([selection])).values()
    if (tool === undefined) throw new Error(`no ${selection}`)
    return tool
  }

  ledger(): string[] {
    const file = join(this.folder, 'ledger')
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
  }

  /** How often the rude server was started. */
  starts(): number {
    return readdirSync(this.folder).filter((name) => name.startsWith('started-')).length
  }
}

/** Performs it as the loop would: the folder of the try is there. */
export function perform(tool: Tool, input: unknown, more: { runId?: string; context?: TryOf } = {}) {
  const context = more.context ?? newContext(more.runId === undefined ? {} : { runId: more.runId as RunId })
  mkdirSync(context.folder, { recursive: true })
  return { context, outcome: tool.perform(input, context) }
}

export const call = (tool: Tool, input: unknown): Promise<ToolOutcome> => perform(tool, input).outcome
