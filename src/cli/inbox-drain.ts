import type { Command } from 'commander'

import { HoldfastError, describeError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { judgeProcess, processIdentity } from '../processes/identity.ts'
import type { ProcessIdentity } from '../processes/identity.ts'
import {
  acknowledgeDelivery,
  findDelivery,
  giveBackDelivery,
  leaseMessages,
  openDelivery,
} from '../threads/delivery.ts'
import type { Delivery, Taker } from '../threads/delivery.ts'
import { viewMessage } from '../threads/view.ts'
import { giveBackLost } from '../workers/tend-inbox.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { countOption } from './count-option.ts'
import { EXIT } from './exit-code.ts'
import { flushed } from './flush.ts'
import type { SetExit } from './main.ts'
import { describeMessage } from './messages.ts'
import { threadOrSelf } from './self.ts'

/** Taking from an inbox: printed and acknowledged at once, or by hand in two steps. */
export function addDeliveries(inbox: Command, setExit: SetExit): void {
  inbox
    .command('drain')
    .description('print what waits and acknowledge it once that is out; what could not be printed waits again')
    .argument('[thread]', 'a thread, or self', 'self')
    .option('--limit <count>', 'how many at most', countOption, LIMITS.page)
    .option(
      '--lease',
      'do not acknowledge: print a delivery for `inbox ack`, which comes back by itself after 15 minutes',
    )
    .action(async (thread: string, flags: DrainFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => drain(context, thread, flags), 'welcome'))
    })
  inbox
    .command('ack')
    .description('acknowledge a delivery: its messages have been seen')
    .argument('<delivery>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withRuntime(command, (context) => acknowledge(context, id), 'welcome')),
    )
  inbox
    .command('release')
    .description('give a delivery back: its messages wait again')
    .argument('<delivery>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withRuntime(command, (context) => release(context, id), 'welcome')),
    )
}

interface DrainFlags {
  readonly limit: number
  readonly lease?: boolean
}

/** Leased by this process: should it die before the output is out, its death is the evidence that gives them back. */
async function drain(context: Context, given: string, { limit, lease: byHand = false }: DrainFlags): Promise<number> {
  const { runtime, output } = context
  const { store } = runtime
  const { id: threadId } = await threadOrSelf(context, given)
  await giveBackLost(store)
  const by: Taker = byHand ? { kind: 'hand' } : { kind: 'process', identity: ownIdentity() }
  const id = `dlv_${runtime.random.id()}`
  const delivery = await store.apply(leaseMessages, { id, threadId, by, limit, bytes: LIMITS.deliveryBytes })
  try {
    await flushed(output.json ? jsonForm(delivery, byHand) : humanForm(delivery, byHand))
  } catch (error) {
    await store.apply(giveBackDelivery, id)
    throw new HoldfastError('inbox/not-printed', `the messages could not be printed: ${describeError(error)}`, {
      remedy: 'they wait again: drain once more, to where it can be written',
      cause: error,
    })
  }
  if (byHand || delivery.messages.length === 0) return EXIT.done
  const seen = await store.apply(acknowledgeDelivery, id)
  if (seen.length < delivery.messages.length) throw lostDelivery(id)
  return EXIT.done
}

function ownIdentity(): ProcessIdentity {
  const identity = processIdentity()
  if (identity !== undefined) return identity
  throw new HoldfastError('processes/no-identity', 'this process cannot be identified', {
    remedy: 'check that /proc is mounted, or use --lease',
  })
}

function jsonForm({ id, messages, remaining }: Delivery, byHand: boolean): string {
  const delivery = byHand && messages.length > 0 ? { delivery: id } : {}
  return `${JSON.stringify({ ...delivery, messages: messages.map(viewMessage), remaining }, null, 2)}\n`
}

function humanForm({ id, messages, remaining }: Delivery, byHand: boolean): string {
  const parts = [
    ...messages.map((message) => describeMessage(message)),
    ...(remaining === 0 ? [] : [`${remaining} more wait: drain again`]),
    ...(byHand && messages.length > 0 ? [`delivery: ${id}`] : []),
  ]
  return parts.length === 0 ? '' : `${parts.join('\n\n')}\n`
}

const lostDelivery = (id: string) =>
  new HoldfastError('messages/delivery-lost', `the delivery ${id} was given back before it was acknowledged`, {
    remedy: 'its messages come again with the next drain; their ids say which you have seen',
  })

async function acknowledge({ runtime, output }: Context, id: string): Promise<number> {
  const seen = await runtime.store.apply(acknowledgeDelivery, id)
  const known = seen.length > 0 ? seen : await runtime.store.read(findDelivery, id)
  if (known.length === 0) throw unknownDelivery(id)
  output.result({ delivery: id, acknowledged: known.length }, () => `${id}: ${known.length} acknowledged`)
  return EXIT.done
}

const unknownDelivery = (id: string) =>
  new HoldfastError('not-found/delivery', `there is no delivery "${id}"`, {
    remedy: 'it may have been given back, by hand or because it was too old: drain again',
  })

async function release({ runtime, output }: Context, id: string): Promise<number> {
  const { store } = runtime
  const [open] = await store.read(openDelivery, id)
  if (open === undefined) {
    if ((await store.read(findDelivery, id)).length === 0) throw unknownDelivery(id)
    throw new HoldfastError('messages/acknowledged', `the delivery ${id} has been acknowledged`, {
      remedy: 'its messages have been seen; there is nothing to give back',
    })
  }
  if (isInUse(open.leasedBy)) {
    throw new HoldfastError('messages/in-use', `the delivery ${id} is in the hands of somebody who is still there`, {
      remedy: 'it comes back by itself when that process or session ends',
    })
  }
  const returned = await store.apply(giveBackDelivery, id)
  output.result({ delivery: id, released: returned.length }, () => `${id}: ${returned.length} wait again`)
  return EXIT.done
}

const isInUse = (taker: Taker) =>
  taker.kind === 'session' || (taker.kind === 'process' && judgeProcess(taker.identity as ProcessIdentity) === 'alive')
