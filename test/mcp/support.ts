import { randomBytes } from 'node:crypto'

import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { inject, onTestFinished } from 'vitest'

import type { ThreadId } from '../../src/base/ids.ts'
import { sessionStarted, turnBegun } from '../../src/sessions/events.ts'
import type { Heard } from '../../src/sessions/events.ts'
import type { Store } from '../../src/store/store.ts'
import { openThread } from '../../src/threads/thread.ts'
import { AgentInstallation } from '../support/agents.ts'
import { withParameters } from '../support/engines.ts'
import { PROGRAM } from '../support/holdfast.ts'

export const BOSS = 'boss' as ThreadId
export const SELF = 'claude-s1' as ThreadId
export const HEARD: Heard = { client: 'claude', sessionId: 's1', startedFrom: BOSS }

/** One round of a call: an answer, or what the client is to come back with. */
export interface Round {
  readonly value?: Readonly<Record<string, unknown>>
  readonly error?: string
  readonly requestState?: string
}

export interface Caller {
  readonly client: Client
  readonly pid: number
  /** Until the answer, as the library does it by itself. */
  readonly call: (name: string, args?: object) => Promise<Round>
  /** One round, by hand. */
  readonly round: (name: string, args?: object, requestState?: string) => Promise<Round>
  /** A client that is gone, and its server with it. */
  readonly close: () => Promise<void>
}

export interface Place {
  readonly installation: AgentInstallation
  readonly store: Store
  readonly connect: (options?: { readonly legacy?: boolean; readonly env?: Record<string, string> }) => Promise<Caller>
}

const AGENTS = { helper: { replies: [{ text: 'helped' }] } }

/** A session of Claude Code in its turn, which the thread `boss` has started; and clients that are its process. */
export async function makePlace(engine: 'sqlite' | 'postgres' = 'sqlite'): Promise<Place> {
  const schema = `mcp_${randomBytes(6).toString('hex')}`
  const options = engine === 'sqlite' ? {} : { store: withParameters(inject('postgres'), { schema }) }
  const installation = new AgentInstallation({ agents: AGENTS, policy: [] }, options)
  const store = await installation.store()
  await store.apply(openThread, BOSS, 'claude', null)
  await store.apply(sessionStarted, HEARD, 'startup')
  await store.apply(turnBegun, HEARD, 'p1')
  return { installation, store, connect: (how = {}) => connect(installation, how) }
}

async function connect(
  { home, configuration, storeUrl }: AgentInstallation,
  { legacy = false, env = { CLAUDE_CODE_SESSION_ID: 's1' } }: { legacy?: boolean; env?: Record<string, string> },
): Promise<Caller> {
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: legacy ? 'legacy' : { pin: '2026-07-28' } } },
  )
  const place = { HOLDFAST_HOME: home, ...(storeUrl === undefined ? {} : { HOLDFAST_STORE: storeUrl }) }
  const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env
  const transport = new StdioClientTransport({
    command: PROGRAM,
    args: ['--config', configuration, 'mcp'],
    env: { PATH, NODE_COMPILE_CACHE, HOME: home, ...place, ...env },
    stderr: 'inherit',
  })
  onTestFinished(() => client.close())
  await client.connect(transport)
  const round = async (name: string, args: object = {}, requestState?: string) => {
    const state = requestState === undefined ? {} : { requestState }
    const params = { name, arguments: { ...args }, ...state }
    return roundOf(await client.request({ method: 'tools/call', params }, { allowInputRequired: true }))
  }
  const call = async (name: string, args: object = {}) =>
    roundOf(await client.callTool({ name, arguments: { ...args } }))
  return { client, pid: transport.pid!, call, round, close: () => client.close() }
}

function roundOf(result: object): Round {
  const { requestState, content, isError } = result as {
    requestState?: string
    content?: readonly { readonly text: string }[]
    isError?: boolean
  }
  if (requestState !== undefined) return { requestState }
  const text = content?.[0]?.text ?? ''
  return isError === true ? { error: text } : { value: JSON.parse(text) as Record<string, unknown> }
}
