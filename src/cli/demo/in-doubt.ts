import { check, entriesIn, sameList } from './act.ts'
import type { Act } from './act.ts'
import type { ShownRun } from './stage.ts'

export interface InDoubtFacts {
  readonly supervisorsKilled: number
  readonly payments: readonly string[]
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
    const runs = { rent: settled(await stage.ended(rent)), power: settled(await stage.ended(power)) }
    const payments = paidIn(stage.read('payments.txt'))
    tell(`rent: its tool has no probe, so it stays ${words(runs.rent)}; the model is told, and a person can look.`)
    tell(`power: its tool has a probe, and that found the payment: ${words(runs.power)}.`)
    return { supervisorsKilled: supervisors.length, payments, ...runs }
  },

  judge: (facts) => [
    check('both supervisors were killed', facts.supervisorsKilled === 2, facts.supervisorsKilled),
    check('each payment is in the ledger once', sameList(facts.payments, PAYMENTS), facts.payments),
    check('without a probe the write is in doubt, and said to be', facts.rent.state === 'in_doubt', facts.rent),
    check(
      'with a probe it is settled by evidence',
      facts.power.state === 'done' && facts.power.settledBy === 'its probe',
      facts.power,
    ),
  ],
}

/** In whatever order the two agents came to it. */
const paidIn = (ledger: string) => entriesIn(ledger).toSorted()

function settled({ id, actions }: ShownRun): Settled {
  return { runId: id, state: actions[0]?.state, settledBy: actions[0]?.settledBy }
}

const words = ({ state, settledBy }: Settled) =>
  state === 'in_doubt' ? 'in doubt' : `${state}, settled by ${settledBy}`
