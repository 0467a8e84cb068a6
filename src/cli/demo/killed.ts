import { check, entriesIn, sameList } from './act.ts'
import type { Act } from './act.ts'
import { TOKENS_A_CALL } from './script.ts'

export interface KilledFacts {
  /** By the ledger, which shares no code with Holdfast: at the kill, before the next daemon, at the end. */
  readonly ledgerAtKill: string
  readonly ledgerWithoutDaemon: readonly string[]
  readonly ledger: readonly string[]
  readonly runId: string
  readonly state: string
  readonly attempts: number
  readonly settledBy: readonly (string | undefined)[]
  readonly modelCalls: number
}

const ENTRIES = ['one', 'two', 'three']
const REPLIES = 2

export const killed: Act<KilledFacts> = {
  name: 'killed',
  title: 'Three writes, and kill -9 in the middle of the second',

  async play(stage, tell) {
    stage.hold('ledger.txt.two.half')
    const daemon = await stage.up()
    const runId = await stage.send('clerk', 'Write one, two and three.')
    tell(`An agent is asked to write one, two and three into ledger.txt. Its daemon is process ${daemon.pid}.`)
    await stage.until('the second entry is half written', () => stage.read('ledger.txt').endsWith('\ntw'))
    await stage.killDaemon()
    const ledgerAtKill = stage.read('ledger.txt')
    tell(`The ledger ends with "${lastLine(ledgerAtKill)}", half of "two": kill -9 ${daemon.pid}. The daemon is dead.`)
    stage.letGo('ledger.txt.two.half')
    await stage.until('the second entry is whole', () => entriesIn(stage.read('ledger.txt')).includes('two'))
    const ledgerWithoutDaemon = entriesIn(stage.read('ledger.txt'))
    tell(`The tool has a supervisor of its own and goes on. The ledger now: ${ledgerWithoutDaemon.join(', ')}.`)
    const next = await stage.up()
    tell(`A new daemon, process ${next.pid}, takes the run up from its record.`)
    const run = await stage.ended(runId)
    const ledger = entriesIn(stage.read('ledger.txt'))
    const settledBy = run.actions.map((action) => action.settledBy)
    tell(`The run ${run.state}. The second write was settled by ${settledBy[1]}. The ledger: ${ledger.join(', ')}.`)
    return {
      ledgerAtKill,
      ledgerWithoutDaemon,
      ledger,
      runId,
      state: run.state,
      attempts: run.attempt,
      settledBy,
      modelCalls: run.usage.inputTokens / TOKENS_A_CALL,
    }
  },

  judge: (facts) => [
    check('the kill came in the middle of the second write', facts.ledgerAtKill.endsWith('\ntw'), facts.ledgerAtKill),
    check('each entry is in the ledger once', sameList(facts.ledger, ENTRIES), facts.ledger),
    check(
      'the second write was not run again: its result was found where its process had left it',
      facts.settledBy[1] === 'what its process left behind' && sameList(facts.ledgerWithoutDaemon, ['one', 'two']),
      { settledBy: facts.settledBy[1], ledgerWithoutDaemon: facts.ledgerWithoutDaemon },
    ),
    check(
      'the run succeeded in its second attempt',
      facts.state === 'succeeded' && facts.attempts === 2,
      `${facts.state}, attempt ${facts.attempts}`,
    ),
    check(`the model was asked ${REPLIES} times, as without a crash`, facts.modelCalls === REPLIES, facts.modelCalls),
  ],
}

const lastLine = (text: string) => text.split('\n').at(-1) ?? ''
