import type { Context, Hono } from 'hono'

import { HoldfastError } from '../base/errors.ts'
import type { RunId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { addressLetter, viewSent } from '../runs/address.ts'
import type { Recipient } from '../runs/address.ts'
import { cancelRun } from '../runs/cancel.ts'
import { RUN_STATES, findRun, isTerminal, listRuns } from '../runs/run.ts'
import type { RunState } from '../runs/run.ts'
import { sendMessage } from '../runs/send.ts'
import { readThreadPage, readWholeThread, viewListedThread, viewWholeThread } from '../runs/thread-view.ts'
import { readWholeRun, viewRun, viewWholeRun } from '../runs/view.ts'
import type { Runtime } from '../runtime.ts'
import { treeOf, viewBranch } from '../sessions/branch.ts'
import { threadFamily } from '../sessions/tree.ts'
import { findThread } from '../threads/thread.ts'
import type { Thread } from '../threads/thread.ts'
import type { Env } from './guard.ts'
import { bodyOf, limitOf, textField, wrong } from './parse.ts'

export function addRoutes(api: Hono<Env>, runtime: Runtime): void {
  api.get('/agents', (c) => c.json({ items: runtime.agents.map((name) => ({ name })) }))
  api.get('/threads', async (c) => c.json(await threadPage(c, runtime)))
  api.get('/threads/:id', async (c) => c.json(await wholeThread(runtime, c.req.param('id'))))
  api.get('/runs', async (c) => c.json(await runPage(c, runtime)))
  api.get('/runs/:id', async (c) => c.json(await wholeRun(runtime, c.req.param('id'))))
  api.post('/messages', async (c) => c.json(await acceptLetter(c, runtime), 201))
  api.post('/runs/:id/cancel', (c) => cancel(c, runtime, c.req.param('id')))
}

const notFound = (noun: string, id: string) =>
  new HoldfastError(`not-found/${noun}`, `there is no ${noun} "${id}"`, { remedy: `GET /api/v1/${noun}s lists them` })

/** `next` is what to give as `after` for the page that follows; without it this is the last. */
function paged<T extends { readonly id: string }>(items: readonly T[], limit: number) {
  const last = items.at(-1)
  return { items, ...(items.length === limit && last !== undefined ? { next: last.id } : {}) }
}

async function threadPage(c: Context<Env>, { store }: Runtime) {
  const [limit, after] = [limitOf(c), c.req.query('after') as ThreadId | undefined]
  if (after !== undefined) await theThread({ store }, after)
  const { threads, seq } = await store.read(readThreadPage, limit, after)
  return { ...paged(threads.map(viewListedThread), limit), seq }
}

async function theThread({ store }: Pick<Runtime, 'store'>, id: string): Promise<Thread> {
  const thread = await store.read(findThread, id as ThreadId)
  if (thread === undefined) throw notFound('thread', id)
  return thread
}

async function wholeThread({ store }: Runtime, id: string) {
  const whole = await store.read(readWholeThread, id as ThreadId, LIMITS.threadShown)
  const tree = treeOf(id as ThreadId, await store.read(threadFamily, id as ThreadId, LIMITS.threadShown))
  if (whole === undefined || tree === undefined) throw notFound('thread', id)
  return { ...viewWholeThread(whole), ...viewBranch(tree) }
}

async function runPage(c: Context<Env>, { store }: Runtime) {
  const limit = limitOf(c)
  const states = statesOf(c)
  const [threadId, after] = [c.req.query('thread') as ThreadId | undefined, c.req.query('after') as RunId | undefined]
  if (threadId !== undefined) await theThread({ store }, threadId)
  if (after !== undefined && (await store.read(findRun, after)) === undefined) throw notFound('run', after)
  const runs = await store.read(listRuns, {
    limit,
    ...(states.length === 0 ? {} : { states }),
    ...(threadId === undefined ? {} : { threadId }),
    ...(after === undefined ? {} : { after }),
  })
  return paged(
    runs.map((run) => viewRun(run)),
    limit,
  )
}

/** `?state=queued&state=running` or `?state=queued,running`. */
function statesOf(c: Context<Env>): RunState[] {
  const words = (c.req.queries('state') ?? []).flatMap((word) => word.split(','))
  const stranger = words.find((word) => !(RUN_STATES as string[]).includes(word))
  if (stranger !== undefined) throw wrong(`"${stranger}" is no state of a run`, `there are ${RUN_STATES.join(', ')}`)
  return words as RunState[]
}

async function wholeRun({ store }: Runtime, id: string) {
  const whole = await store.read(readWholeRun, id as RunId)
  if (whole === undefined) throw notFound('run', id)
  return viewWholeRun(whole)
}

/** Answered when it is stored: whoever has the answer need not send it again. */
async function acceptLetter(c: Context<Env>, runtime: Runtime) {
  const fields = await bodyOf(c, ['agent', 'threadId', 'text', 'key'])
  const [text, key] = [textField(fields, 'text') ?? '', textField(fields, 'key', LIMITS.nameLength)]
  const to = await recipientOf(runtime, textField(fields, 'agent'), textField(fields, 'threadId'))
  const sending = addressLetter(runtime, { to, text, ...(key === undefined ? {} : { key }) })
  return viewSent(await runtime.store.apply(sendMessage, sending), text)
}

async function recipientOf(runtime: Runtime, agent?: string, threadId?: string): Promise<Recipient> {
  if (agent !== undefined && threadId === undefined) return { agent }
  if (threadId !== undefined && agent === undefined) return { thread: await theThread(runtime, threadId) }
  throw wrong('it is not clear who gets it', 'give either agent, for a new thread, or threadId')
}

async function cancel(c: Context<Env>, { store }: Runtime, id: string): Promise<Response> {
  const reason = textField(await bodyOf(c, ['reason']), 'reason', LIMITS.nameLength)
  const request = { by: 'the window', ...(reason === undefined ? {} : { reason }) }
  const answer = await store.apply(cancelRun, id as RunId, request)
  if (answer.kind === 'unknown-run') throw notFound('run', id)
  if (answer.kind === 'already-terminal') {
    throw new HoldfastError('runs/already-terminal', `${id} has ended already: ${answer.run.state}`, {
      remedy: 'there is nothing left to cancel',
    })
  }
  return c.json(viewRun(answer.run), isTerminal(answer.run.state) ? 200 : 202)
}
