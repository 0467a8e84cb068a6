import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

import { newMessageId, newRunId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId, ThreadId } from '../../src/base/ids.ts'
import { findRun, isTerminal } from '../../src/runs/run.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { readWholeRun, viewWholeRun } from '../../src/runs/view.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { Installation, until } from '../support/holdfast.ts'
import type { Running } from '../support/holdfast.ts'

export interface Sent {
  readonly runId: RunId
  readonly threadId: ThreadId
}

export type WholeRun = ReturnType<typeof viewWholeRun> & {
  readonly result?: { readonly text: string; readonly session?: { readonly id: string; readonly insteadOf?: string } }
}

/** A daemon with an agent `coder`, and a way to talk to it that starts no more processes than the daemon does. */
export interface Place {
  readonly installation: Installation
  readonly store: Store
  readonly daemon: Running
  readonly up: () => Promise<Running>
  readonly send: (text: string, to?: ThreadId) => Promise<Sent>
  readonly ended: (sent: Sent) => Promise<WholeRun>
  readonly ask: (text: string, to?: ThreadId) => Promise<WholeRun & { readonly thread: ThreadId }>
}

export async function openPlace(
  config: object,
  env: Readonly<Record<string, string>>,
  installation = new Installation(),
): Promise<Place> {
  writeFileSync(installation.configuration, JSON.stringify(config))
  const up = async () => {
    const daemon = installation.start(['up'], { ...env })
    await daemon.said('holdfast: up:')
    return daemon
  }
  const daemon = await up()
  const store = await openSqliteStore({ path: join(installation.home, 'holdfast.db') })
  onTestFinished(() => store.close())
  const send = async (text: string, to?: ThreadId) => {
    const threadId = to ?? newThreadId(random)
    const messageId = newMessageId(random)
    const sending = { messageId, key: messageId, runId: newRunId(random), threadId, agent: 'coder', text }
    const { runId } = await store.apply(sendMessage, sending)
    return { runId: runId ?? sending.runId, threadId }
  }
  const ended = async ({ runId }: Sent) => {
    await until(`${runId} has ended`, async () => {
      const run = await store.read(findRun, runId)
      return run !== undefined && isTerminal(run.state) ? true : undefined
    })
    const whole = await store.read(readWholeRun, runId)
    return viewWholeRun(whole!) as WholeRun
  }
  const ask = async (text: string, to?: ThreadId) => {
    const sent = await send(text, to)
    return { ...(await ended(sent)), thread: sent.threadId }
  }
  return { installation, store, daemon, up, send, ended, ask }
}
