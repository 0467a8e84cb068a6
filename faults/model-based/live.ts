import { isDeepStrictEqual } from 'node:util'

import type { ThreadId, WorkerId } from '../../src/base/ids.ts'
import { registerWorker } from '../../src/runs/worker.ts'
import type { Transition } from '../../src/store/transition.ts'
import { openThread } from '../../src/threads/thread.ts'
import { someIdentity } from '../../test/support/world.ts'
import { AGENT_THREADS, WORKERS, deedOf } from './commands.ts'
import type { Command } from './commands.ts'
import { expected } from './expected.ts'
import { look, spoken, withoutNumbers } from './look.ts'
import type { Shown } from './look.ts'
import { Model } from './model.ts'
import type { Sides } from './sides.ts'

/** How far a sequence came, and what the three did not agree on. */
export interface Lived {
  readonly done: readonly Command['kind'][]
  readonly runs: number
  readonly events: number
  readonly problem?: string
}

/** Lets the model and both engines do the same, and compares what they answer and what the doors give after each command. */
export async function live(sides: Sides, commands: readonly Command[]): Promise<Lived> {
  await sides.begin()
  const model = new Model()
  model.now = sides.clock.now()
  const seen = { told: 0, seqs: [0, 0] }
  const done: Command['kind'][] = []
  for (const store of sides.stores) await store.apply(stage)
  for (const id of AGENT_THREADS) model.open(id, 'clerk')
  let problem = await disagreement(sides, model, {}, seen)
  for (const [number, command] of commands.entries()) {
    if (problem !== undefined) break
    await sides.pass(command.passMs)
    model.now = sides.clock.now()
    const deed = deedOf(model, command, number)
    if (deed === undefined) continue
    const words = [deed.model(model)]
    for (const store of sides.stores) words.push(await deed.store(store).catch(String))
    done.push(command.kind)
    const isSame = words.every((word) => word === words[0])
    problem = isSame ? await disagreement(sides, model, deed.shown ?? {}, seen) : said('the answers', words)
    if (problem !== undefined) problem = `after ${done.length} commands, ${command.kind}: ${problem}`
  }
  return { done, runs: model.runs.length, events: model.log.length, ...(problem === undefined ? {} : { problem }) }
}

/** Two workers, and the threads of an agent. */
function* stage(): Transition<void> {
  for (const id of WORKERS) {
    const worker = {
      id: id as WorkerId,
      kind: 'command',
      home: id,
      identity: someIdentity(),
      agents: ['clerk'],
    } as const
    yield* registerWorker(worker)
  }
  for (const id of AGENT_THREADS) yield* openThread(id as ThreadId, 'clerk', null)
}

const said = (what: string, [model, sqlite, postgres]: readonly string[]) =>
  `${what} differ\n    model:      ${model}\n    SQLite:     ${sqlite}\n    PostgreSQL: ${postgres}`

async function disagreement(
  { stores }: Sides,
  model: Model,
  shown: Shown,
  seen: { told: number; readonly seqs: number[] },
): Promise<string | undefined> {
  const [left, right] = await Promise.all(stores.map((store, at) => store.read(look, shown, seen.seqs[at]!)))
  seen.seqs.splice(0, 2, left!.lastSeq, right!.lastSeq)
  const wanted = expected(model, shown, seen.told)
  seen.told = model.log.length
  if (withoutNumbers(left) !== withoutNumbers(right)) return firstDifference(wanted, left!, right!)
  const is = spoken(left!)
  return isDeepStrictEqual(is, wanted) ? undefined : firstDifference(wanted, is, spoken(right!))
}

/** The first part of it in which they differ. */
function firstDifference(wanted: object, left: object, right: object): string {
  const of = (all: object, name: string) => withoutNumbers((all as Record<string, unknown>)[name]) ?? 'nothing'
  const isOther = (name: string) => of(left, name) !== of(right, name)
  const names = Object.keys(left)
  const name = names.find(isOther) ?? names.find((each) => of(wanted, each) !== of(left, each)) ?? '?'
  return said(name, [of(wanted, name), of(left, name), of(right, name)])
}
