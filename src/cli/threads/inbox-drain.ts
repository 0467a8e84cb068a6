import type { Command } from 'commander'

import type { Answer } from '../../api/routes.ts'
import { HoldfastError, describeError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import { acknowledgeDelivery, giveBackDelivery, leaseMessages } from '../../threads/delivery.ts'
import { viewMessage } from '../../threads/view.ts'
import { giveBackLost } from '../../workers/tend-inbox.ts'
import { withApi } from '../around/context.ts'
import type { Context, Operator } from '../around/context.ts'
import { countOption } from '../words/count-option.ts'
import { EXIT } from '../words/exit-code.ts'
import { flushed } from '../words/flush.ts'
import type { SetExit } from '../main.ts'
import { describeMessage } from './messages.ts'
import { jsonText, visible } from '../words/output.ts'
import { namedThread, ownIdentity, threadOrSelf } from '../around/self.ts'

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
      setExit(await withApi(command, (operator) => drain(operator, thread, flags)))
    })
  inbox
    .command('ack')
    .description('acknowledge a delivery: its messages have been seen')
    .argument('<delivery>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withApi(command, (operator) => acknowledge(operator, id))),
    )
  inbox
    .command('release')
    .description('give a delivery back: its messages wait again')
    .argument('<delivery>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withApi(command, (operator) => release(operator, id))),
    )
}

interface DrainFlags {
  readonly limit: number
  readonly lease?: boolean
}

type Taken = Answer<'inbox.drain'>

/** Somebody's messages in this process' hands, until they are printed. */
interface Hands {
  readonly taken: Taken
  acknowledge(): Promise<number>
  giveBack(): Promise<unknown>
}

async function drain(operator: Operator, given: string, { limit, lease: byHand = false }: DrainFlags): Promise<number> {
  const { output, local } = operator
  const isOurs = local !== undefined && !byHand
  const { taken, ...hands } = isOurs ? await takeHere(local, given, limit) : await takeByHand(operator, given, limit)
  const { delivery, ...rest } = taken
  const shown = byHand ? taken : rest
  try {
    await flushed(output.json ? `${jsonText(shown, 2)}\n` : visible(humanForm(shown)))
  } catch (error) {
    if (delivery !== undefined) await hands.giveBack()
    throw new HoldfastError('inbox/not-printed', `the messages could not be printed: ${describeError(error)}`, {
      remedy: 'they wait again: drain once more, to where it can be written',
      cause: error,
    })
  }
  if (byHand || delivery === undefined) return EXIT.done
  if ((await hands.acknowledge()) < taken.messages.length) throw lostDelivery(delivery)
  return EXIT.done
}

/** Leased by this process: should it die before the output is out, its death is the evidence that gives them back. */
async function takeHere(context: Context, given: string, limit: number): Promise<Hands> {
  const { store, random } = context.runtime
  const { id: threadId } = await threadOrSelf(context, given)
  await giveBackLost(store)
  const id = `dlv_${random.id()}`
  const by = { kind: 'process', identity: ownIdentity(', or use --lease') } as const
  const { messages, remaining } = await store.apply(leaseMessages, {
    id,
    threadId,
    by,
    limit,
    bytes: LIMITS.deliveryBytes,
  })
  return {
    taken: { ...(messages.length === 0 ? {} : { delivery: id }), messages: messages.map(viewMessage), remaining },
    acknowledge: async () => (await store.apply(acknowledgeDelivery, id)).length,
    giveBack: () => store.apply(giveBackDelivery, id),
  }
}

/** Elsewhere nobody can see this process die: what it does not acknowledge comes back after a while. */
async function takeByHand(operator: Operator, given: string, limit: number): Promise<Hands> {
  const { api } = operator
  const taken = await api.call('inbox.drain', { thread: await namedThread(operator, given), limit })
  const { delivery = '' } = taken
  return {
    taken,
    acknowledge: async () => (await api.call('inbox.ack', { delivery })).acknowledged,
    giveBack: () => api.call('inbox.release', { delivery }),
  }
}

function humanForm({ delivery, messages, remaining }: Taken): string {
  const parts = [
    ...messages.map((message) => describeMessage(message)),
    ...(remaining === 0 ? [] : [`${remaining} more wait: drain again`]),
    ...(delivery === undefined ? [] : [`delivery: ${delivery}`]),
  ]
  return parts.length === 0 ? '' : `${parts.join('\n\n')}\n`
}

const lostDelivery = (id: string) =>
  new HoldfastError('messages/delivery-lost', `the delivery ${id} was given back before it was acknowledged`, {
    remedy: 'its messages come again with the next drain; their ids say which you have seen',
  })

async function acknowledge({ api, output }: Operator, delivery: string): Promise<number> {
  const answer = await api.call('inbox.ack', { delivery })
  output.result(answer, () => `${delivery}: ${answer.acknowledged} acknowledged`)
  return EXIT.done
}

async function release({ api, output }: Operator, delivery: string): Promise<number> {
  const answer = await api.call('inbox.release', { delivery })
  output.result(answer, () => `${delivery}: ${answer.released} wait again`)
  return EXIT.done
}
