import { check, entriesIn, sameList } from './act.ts'
import type { Act } from './act.ts'
import type { ShownRun, Stage } from './stage.ts'

export interface InDoubtFacts {
  readonly supervisorsKilled: number
  readonly payments: readonly string[]
  /** What was listed as in doubt when the new daemon had looked. */
  readonly doubts: readonly string[]
  /** The payment by a tool that nobody can ask. */
  readonly rent: Settled
  /** The payment by a tool with a probe. */
  readonly power: Settled
}

interface Settled {
  readonly runId: string
  readonly state: string | undefined
  readonly settledBy: string | undefined
}

const PAYMENTS = ['power', 'rent']

export const inDoubt: Act<InDoubtFacts> = {
  name: 'in-doubt',
  title: 'Two payments, and nobody left who saw them end',

  async play(stage, tell) {
    for (const entry of PAYMENTS) stage.hold(`payments.txt.${entry}.silent`)
    const daemon = await stage.up()
    const rent = await stage.send('payer', 'Pay the rent.')
    const power = await stage.send('careful-payer', 'Pay the power bill.')
    await stage.until('both payments are written', () => sameList(paidIn(stage.read('payments.txt')), PAYMENTS))
    tell('Two agents have paid, rent and power; neither tool has reported yet.')
    const supervisors = stage.supervisors()
    await stage.killDaemon()
    await stage.kill(supervisors)
    const killedPids = supervisors.map(({ pid }) => pid).join(' ')
    tell(`kill -9 ${daemon.pid} ${killedPids}: this time the supervisors of both tools die with the daemon.`)
    await stage.up()
    tell('A new daemon cannot know whether the payments happened, and repeats neither.')
    const atPower = settled(await stage.ended(power))
    tell(`power: its tool has a probe, and that found the payment: ${words(atPower)}.`)
    const doubts = await openDoubts(stage)
    const listed = doubts.map(({ input }) => input.entry)
    tell(`rent: its tool has no probe, so its run waits for a person: holdfast doubts lists ${listed.join(', ')}.`)
    for (const { id } of doubts)
      await stage.json('doubts', 'resolve', id, '--happened', '--why', 'it is in payments.txt')
    const atRent = settled(await stage.ended(rent))
    tell(
      `A person looks into payments.txt: holdfast doubts resolve ${doubts[0]?.id} --happened. It is ${atRent.state}.`,
    )
    const payments = paidIn(stage.read('payments.txt'))
    return { supervisorsKilled: supervisors.length, payments, doubts: listed, rent: atRent, power: atPower }
  },

  judge: (facts) => [
    check('both supervisors were killed', facts.supervisorsKilled === 2, facts.supervisorsKilled),
    check('each payment is in the ledger once', sameList(facts.payments, PAYMENTS), facts.payments),
    check('without a probe the write is in doubt, and its run waits', sameList(facts.doubts, ['rent']), facts.doubts),
    check(
      'a person settled that one, and their word is on record',
      facts.rent.state === 'done' && facts.rent.settledBy?.endsWith('it is in payments.txt') === true,
      facts.rent,
    ),
    check(
      'with a probe it is settled by evidence',
      facts.power.state === 'done' && facts.power.settledBy === 'its probe',
      facts.power,
    ),
  ],
}

interface Doubt {
  readonly id: string
  readonly input: { readonly entry: string }
}

/** Waits until there are some. */
async function openDoubts(stage: Stage): Promise<readonly Doubt[]> {
  let found: readonly Doubt[] = []
  await stage.until('something is in doubt', async () => {
    found = await stage.json<readonly Doubt[]>('doubts', 'list')
    return found.length > 0
  })
  return found
}

/** In whatever order the two agents came to it. */
const paidIn = (ledger: string) => entriesIn(ledger).toSorted()

function settled({ id, actions }: ShownRun): Settled {
  return { runId: id, state: actions[0]?.state, settledBy: actions[0]?.settledBy }
}

const words = ({ state, settledBy }: Settled) => `${state}, settled by ${settledBy}`
