import type { Context, Hono } from 'hono'

import {
  askedByPrefix,
  askedMatters,
  doubtfulByPrefix,
  doubtfulMatters,
  viewAsked,
  viewDoubt,
} from '../actions/desk.ts'
import type { AskedMatter, Matter } from '../actions/desk.ts'
import { decideApproval } from '../actions/decide.ts'
import type { Answer } from '../actions/decide.ts'
import { resolveDoubt } from '../actions/doubt.ts'
import type { Resolution } from '../actions/doubt.ts'
import { resolved, taken } from '../actions/verdict.ts'
import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import type { Runtime } from '../runtime.ts'
import type { Env } from './guard.ts'
import { bodyOf, limitOf, textField, wrong } from './parse.ts'
import type { Fields } from './parse.ts'

/** What needs a person, and their answers. Whoever has the token may decide. */
export function addDecisions(api: Hono<Env>, runtime: Runtime): void {
  const { store } = runtime
  api.get('/approvals', async (c) => c.json({ items: (await store.read(askedMatters, limitOf(c))).map(viewAsked) }))
  api.get('/approvals/:id', async (c) => c.json(viewAsked(await theApproval(runtime, c.req.param('id')))))
  api.post('/approvals/:id', (c) => decide(c, runtime, c.req.param('id')))
  api.get('/doubts', async (c) => c.json({ items: (await store.read(doubtfulMatters, limitOf(c))).map(viewDoubt) }))
  api.get('/doubts/:id', async (c) => c.json(viewDoubt(await theDoubt(runtime, c.req.param('id')))))
  api.post('/doubts/:id', (c) => resolve(c, runtime, c.req.param('id')))
}

/** There is one token, in the file of this name. */
const TOKEN_NAME = 'token'

/**
 * Who decides. A token proves that its holder may decide, not who that is: the name is what the request says, and is
 * recorded as that.
 */
function whoOf(fields: Fields): { readonly by: string; readonly via: 'HTTP' } {
  const named = textField(fields, 'by', LIMITS.nameLength)
  const holder = `whoever has the ${TOKEN_NAME}`
  return { by: named === undefined ? holder : `${named}, as ${holder} says`, via: 'HTTP' }
}

const notFound = (noun: string, id: string) =>
  new HoldfastError(`not-found/${noun}`, `there is no ${noun} "${id}"`, { remedy: `GET /api/v1/${noun}s lists them` })

async function theApproval({ store }: Runtime, id: string): Promise<AskedMatter> {
  const found = (await store.read(askedByPrefix, id)).find(({ approval }) => approval.id === id)
  if (found === undefined) throw notFound('approval', id)
  return found
}

async function theDoubt({ store }: Runtime, id: string): Promise<Matter> {
  const found = (await store.read(doubtfulByPrefix, id)).find(({ action }) => action.id === id)
  if (found === undefined) throw notFound('doubt', id)
  return found
}

function oneOf<const T extends string>(fields: Fields, name: string, choices: readonly T[]): T {
  const value = textField(fields, name)
  const found = choices.find((choice) => choice === value)
  if (found === undefined) throw wrong(`${name} is not as it should be`, `${name} is one of ${choices.join(', ')}`)
  return found
}

/** The digest is needed: a program that has not looked at what would run has nothing to decide. */
async function decide(c: Context<Env>, runtime: Runtime, id: string): Promise<Response> {
  const fields = await bodyOf(c, ['decision', 'digest', 'note', 'by'])
  const kind = oneOf(fields, 'decision', ['approve', 'skip', 'deny'])
  const [digest, note] = [textField(fields, 'digest'), textField(fields, 'note', LIMITS.nameLength)]
  if (digest === undefined) throw wrong('digest is missing', 'give the digest of the approval as it was shown to you')
  const matter = await theApproval(runtime, id)
  const answer: Answer = { kind, digest, ...whoOf(fields), ...(note === undefined ? {} : { note }) }
  const decided = await runtime.store.apply(decideApproval, id, answer)
  return c.json(viewAsked({ ...matter, ...taken(matter.approval, decided, `GET /api/v1/approvals/${id}`) }))
}

const RESOLUTIONS = ['happened', 'did-not-happen', 'run-again', 'give-up'] as const

async function resolve(c: Context<Env>, runtime: Runtime, id: string): Promise<Response> {
  const fields = await bodyOf(c, ['resolution', 'result', 'why', 'by'])
  const kind = oneOf(fields, 'resolution', RESOLUTIONS)
  const why = textField(fields, 'why', LIMITS.nameLength)
  const said = { by: whoOf(fields).by, ...(why === undefined ? {} : { why }) }
  const resolution: Resolution =
    kind === 'happened' && fields['result'] !== undefined
      ? { kind, ...said, result: fields['result'] }
      : { kind, ...said }
  const matter = await theDoubt(runtime, id)
  const action = resolved(id, await runtime.store.apply(resolveDoubt, matter.action.id, resolution))
  return c.json(viewDoubt({ ...matter, action }))
}
