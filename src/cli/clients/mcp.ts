import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { Command } from 'commander'

import { createFileOnce } from '../../base/files.ts'
import type { RunId } from '../../base/ids.ts'
import { LIMITS } from '../../base/limits.ts'
import { ownVersion } from '../../base/version.ts'
import { theThread } from '../../control/find.ts'
import type { Caller } from '../../mcp/caller.ts'
import { Handed } from '../../mcp/handed.ts'
import { SERVER_LIMITS } from '../../mcp/limits.ts'
import type { Desk } from '../../mcp/tool.ts'
import { findRun } from '../../runs/run.ts'
import type { Run } from '../../runs/run.ts'
import { sessionsOfThread } from '../../sessions/session.ts'
import { findThread } from '../../threads/thread.ts'
import type { Thread } from '../../threads/thread.ts'
import { giveBackLost } from '../../workers/tend-inbox.ts'
import { withRuntime } from '../around/context.ts'
import type { Context } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { ownIdentity, selfThread } from '../around/self.ts'
import { whenToldToStop } from '../around/told-to-stop.ts'

export function addMcp(own: Command, setExit: SetExit): void {
  own.action(async (_: unknown, command: Command) => {
    setExit(await withRuntime(command, serveHere, 'welcome'))
  })
}

async function serveHere(context: Context): Promise<number> {
  const { runtime, output } = context
  // Loaded here: it takes some 150 ms, which no other command needs to wait for.
  const { serve } = await import('../../mcp/serve.ts')
  const desk = deskOf(context)
  const served = serve({ desk, version: ownVersion(), key: await signingKey(runtime.home, runtime), warn: output.note })
  const stops = whenToldToStop()
  stops.cancel(() => void served.close())
  try {
    await served.ended
    return EXIT.done
  } finally {
    stops.ignore()
  }
}

function deskOf(context: Context): Desk {
  const { runtime, environment } = context
  const { store, clock, random, agents, backlog, config } = runtime
  return {
    store,
    clock,
    random,
    agents,
    backlog,
    approvalMs: config?.approvalMs ?? LIMITS.approvalMs,
    ...(config === undefined ? {} : { policy: config.policy }),
    folder: config?.folder ?? runtime.home,
    environment: environment.variables,
    self: () => callerOf(context),
    threadNamed: (given) => theThread(store, given),
    giveBackLost: () => giveBackLost(store),
    identity: ownIdentity(': what is taken from an inbox is given back by the death of who took it'),
    handed: new Handed(store),
  }
}

/** A key that others do not know, made by whoever comes first. */
async function signingKey(home: string, { random }: Context['runtime']): Promise<Uint8Array> {
  const path = join(home, 'mcp.key')
  await createFileOnce(path, random.hex(SERVER_LIMITS.keyBytes))
  return Buffer.from(await readFile(path, 'utf8'), 'utf8')
}

/** Looked up at each call: a session goes on under another name after its conversation was cleared. */
async function callerOf(context: Context): Promise<Caller> {
  const { store } = context.runtime
  const thread = await selfThread(context)
  const outer = await running(context, context.environment.run)
  const run = (await turnUnderWay(context, thread)) ?? (outer?.threadId === thread.id ? outer : undefined)
  // A client that is the turn of an agent of ours has no parent; that turn has.
  const parentId = thread.parentId ?? outer?.parentThreadId ?? undefined
  const parent = parentId === undefined ? undefined : await store.read(findThread, parentId)
  return { thread, ...(run === undefined ? {} : { run }), ...(parent === undefined ? {} : { parent }) }
}

async function turnUnderWay(context: Context, { id }: Thread): Promise<Run | undefined> {
  const sessions = await context.runtime.store.read(sessionsOfThread, id)
  return running(context, sessions.find(({ runId, endedAt }) => runId !== null && endedAt === null)?.runId ?? undefined)
}

async function running({ runtime }: Context, id: RunId | undefined): Promise<Run | undefined> {
  const run = id === undefined ? undefined : await runtime.store.read(findRun, id)
  return run?.state === 'running' ? run : undefined
}
