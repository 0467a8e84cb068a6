import { describe, expect, test } from 'vitest'

import { attemptsOf } from '../../src/runs/attempt.ts'
import { isTerminal } from '../../src/runs/run.ts'
import type { Run } from '../../src/runs/run.ts'
import type { Store } from '../../src/store/store.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { openThread } from '../../src/threads/thread.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants, snapshot } from '../support/invariants.ts'
import { LEASE_MS, aThread, addWorker, claim, reread, submission, submit, submitted } from '../support/world.ts'
import { interleavings, step } from './actors.ts'
import type { Actor, Step } from './actors.ts'

/** Two actors with their transitions. SQLite runs a transition in one go, so the gates lie between them. */
interface Duel {
  readonly title: string
  readonly left: readonly Step[]
  readonly right: readonly Step[]
  /** Who holds the run when it begins; `nobody`: it is queued. The other knows the attempt, as a taker does. */
  readonly holder: 'left' | 'right' | 'a third' | 'nobody'
  /** The holder has not renewed its lease in time. */
  readonly leaseOver?: boolean
  /** The state in which the run must end, and by whose result, from the order of the steps. */
  ends(order: string): { state: string; by: string | null }
}

const succeeded = (by: string) => ({ state: 'succeeded', by })
const cancelled = { state: 'cancelled', by: null }
const nth = (order: string, side: string, count: number) =>
  order.split('').reduce((seen, each, index) => (each === side ? [...seen, index] : seen), [] as number[])[count - 1]!
/** Whether the left's nth step came before the right's nth. */
const before = (order: string, left: number, right: number) => nth(order, 'L', left) < nth(order, 'R', right)

const DUELS: readonly Duel[] = [
  {
    title: 'a claim against a claim',
    holder: 'nobody',
    left: [step.claim, step.start, step.finish],
    right: [step.claim, step.start, step.finish],
    ends: (order) => succeeded(order.startsWith('L') ? 'left' : 'right'),
  },
  {
    title: 'a finish against a takeover',
    holder: 'left',
    left: [step.start, step.finish],
    right: [step.takeOver('owner-dead'), step.finish],
    ends: (order) => succeeded(before(order, 2, 1) ? 'left' : 'right'),
  },
  {
    title: 'a takeover against a takeover',
    holder: 'a third',
    left: [step.takeOver('owner-dead'), step.start, step.finish],
    right: [step.takeOver('owner-dead'), step.start, step.finish],
    ends: (order) => succeeded(order.startsWith('L') ? 'left' : 'right'),
  },
  {
    title: 'a renewal against a takeover of a lease that is over',
    holder: 'left',
    leaseOver: true,
    left: [step.renew, step.renew, step.finish],
    right: [step.takeOver('lease-over'), step.finish],
    ends: (order) => succeeded(order.startsWith('R') ? 'right' : 'left'),
  },
  {
    title: 'a cancel against a claim',
    holder: 'nobody',
    left: [step.cancel],
    right: [step.claim, step.start, step.finish],
    ends: (order) => (order === 'RRRL' ? succeeded('right') : cancelled),
  },
  {
    title: 'a cancel against a park',
    holder: 'right',
    left: [step.cancel],
    right: [step.start, step.park, step.resume, step.claim, step.finish],
    ends: (order) => (order === 'RRRRRL' ? succeeded('right') : cancelled),
  },
  {
    title: 'a hand-over and its taker against a finish',
    holder: 'right',
    left: [step.handOver, step.takeOver('released'), step.finish],
    right: [step.finish],
    ends: (order) => succeeded(before(order, 2, 1) ? 'left' : 'right'),
  },
  {
    title: 'a requeue against a cancel',
    holder: 'left',
    left: [step.requeue, step.claim, step.finish],
    right: [step.cancel],
    ends: (order) => (order === 'LLLR' ? succeeded('left') : cancelled),
  },
]

interface Scene {
  readonly run: Run
  readonly left: Actor
  readonly right: Actor
}

async function sceneOf(duel: Duel, stores: readonly Store[], clock: FakeClock): Promise<Scene> {
  const workers = [await addWorker(stores[0]!), await addWorker(stores[1]!), await addWorker(stores[0]!)]
  const parentThreadId = aThread()
  await stores[0]!.apply(openThread, parentThreadId, 'conductor', null)
  const run = await submitted(stores[0]!, { parentThreadId })
  const owner = workers[['left', 'right', 'a third'].indexOf(duel.holder)]
  const claimed = owner === undefined ? undefined : await claim(stores[0]!, owner, { total: 50 }, run.id)
  const held = claimed && {
    id: claimed.attempt.id,
    runId: run.id,
    fence: claimed.run.fence,
    mark: claimed.attempt.mark,
  }
  if (duel.leaseOver === true) clock.advance(LEASE_MS + 1)
  const actor = (name: 'left' | 'right', index: number): Actor => ({
    name,
    store: stores[index]!,
    workerId: workers[index]!,
    run,
    held,
    mine: duel.holder === name ? held : undefined,
    told: [],
  })
  return { run, left: actor('left', 0), right: actor('right', 1) }
}

/** From the instant of the request nobody starts, parks, queues again or wins anything but `cancelled`. */
function checkAfterCancel(answer: unknown, is: Run, where: string): void {
  expect(['running', 'cancelled'], `${where}: after cancel`).toContain(is.state)
  expect(['claimed', 'starting', 'parked', 'resumed', 'requeued'], `${where}: after cancel`).not.toContain(answer)
}

/** One transition, and what must be true of any: see the assertions. */
async function take(actor: Actor, next: Step, where: string): Promise<void> {
  const [was, all] = [await reread(actor.store, actor.run.id), await snapshot(actor.store)]
  const fenced = actor.mine !== undefined && actor.mine.fence < was.fence
  actor.told.push(await next.act(actor))
  await assertInvariants(actor.store)
  const is = await reread(actor.store, actor.run.id)
  const live = (await actor.store.read(attemptsOf, is.id)).filter(({ endedAt }) => endedAt === null)
  expect(live.length, `${where}: live attempts`).toBeLessThanOrEqual(1)
  expect(is.fence, `${where}: the fence`).toBeGreaterThanOrEqual(was.fence)
  if (isTerminal(was.state)) expect(is, `${where}: an end that changed`).toEqual(was)
  if (was.cancelRequestedAt !== null) checkAfterCancel(actor.told.at(-1), is, where)
  const onlyHolders = ['start', 'finish', 'park', 'requeue', 'renew'].includes(next.name)
  if (fenced && onlyHolders) expect(await snapshot(actor.store), `${where}: a fenced worker`).toEqual(all)
}

async function play(duel: Duel, order: string, stores: readonly Store[], clock: FakeClock): Promise<void> {
  const scene = await sceneOf(duel, stores, clock)
  const queues = { L: [...duel.left], R: [...duel.right] }
  for (const [index, side] of order.split('').entries()) {
    const actor = side === 'L' ? scene.left : scene.right
    const next = queues[side as 'L' | 'R'].shift()!
    await take(actor, next, `${duel.title}, ${order}, gate ${index + 1} (${next.name})`)
  }
  const { state, result } = await reread(stores[0]!, scene.run.id)
  const by = (result as { by: string } | null)?.by ?? null
  const expected = duel.ends(order)
  expect({ state, by, order }).toEqual({ ...expected, order })
  const told = [...scene.left.told, ...scene.right.told]
  expect(told.filter((answer) => answer === 'finished').length, order).toBeLessThanOrEqual(1)
}

describe.each(engines)('two workers held at gates on $name', (engine) => {
  test.each(DUELS)(
    '$title: in every order one of them has it, never two, and who lost changes nothing [T1] [T2] [T3] [runs/fenced] [runs/one-terminal] [runs/cancel-is-final]',
    async (duel) => {
      const clock = new FakeClock()
      const database = await engine.database()
      const stores = [await database.open({ clock }), await database.open({ clock })]
      const orders = interleavings(duel.left.length, duel.right.length)
      expect(new Set(orders).size).toBe(binomial(duel.left.length + duel.right.length, duel.left.length))
      for (const order of orders) await play(duel, order, stores, clock)
    },
  )

  test('fifty submissions of one key over two stores make one run and get fifty equal answers', async () => {
    const database = await engine.database()
    const stores = [await database.open(), await database.open()]
    const same = submission({ key: 'the same' })
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        submit(stores[index % 2]!, { ...submission(), key: 'the same', request: same.request }),
      ),
    )
    const [{ run } = {}] = answers.flatMap((answer) => (answer.kind === 'submitted' ? [answer] : []))
    expect(answers.map(({ kind }) => kind).toSorted()).toEqual([
      ...Array.from({ length: 49 }, () => 'existing'),
      'submitted',
    ])
    for (const answer of answers) expect(answer).toMatchObject({ run })
    expect((await snapshot(stores[0]!))['runs']).toHaveLength(1)
    await assertInvariants(stores[0]!)
  })
})

const factorial = (n: number): number => (n <= 1 ? 1 : n * factorial(n - 1))
const binomial = (n: number, k: number) => factorial(n) / factorial(k) / factorial(n - k)
