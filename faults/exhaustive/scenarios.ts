import { sleep } from '../../src/base/clock.ts'
import type { FaultKind, Moment } from '../simulation/faults.ts'
import { CLERK } from '../simulation/people.ts'
import type { Decision, People } from '../simulation/people.ts'
import type { World } from '../simulation/world.ts'

export interface Scenario {
  readonly name: string
  readonly play: (people: People, world: World) => Promise<void>
  /** What somebody says who looks at what waits; without it nobody looks. */
  readonly says?: Decision
  /** Whether a write that was cut off can be asked about. */
  readonly probes?: boolean
  /** How often the schedule fires. */
  readonly firings?: number
  /** How many of the first questions the model wants to be asked later. */
  readonly rests?: number
  /** What has gone wrong already, the first time that a worker comes to this moment. */
  readonly base?: { readonly moment: Moment; readonly kind: FaultKind }
}

const task = (nth: number) => (people: People) => people.send(`task ${nth}`, `task ${nth}`, CLERK, 'clerk')

/** Each promise has one in which it matters. `task 0` needs somebody's yes, `task 1` does not. */
export const SCENARIOS: readonly Scenario[] = [
  // Of what is in doubt in it a person says that it did not happen.
  { name: 'a run that succeeds', play: task(1), says: 'deny' },
  {
    name: 'a run that is cancelled',
    async play(people, { time }) {
      await task(1)(people)
      await sleep(time, 3)
      await people.cancel('any')
    },
  },
  {
    name: 'a parent with two children',
    play: (people) => people.send('Let 2 do it, then sum up.', 'the work'),
    says: 'approve',
  },
  { name: 'a write that a person allows', play: task(0), says: 'approve' },
  { name: 'a write that a person denies', play: task(0), says: 'deny' },
  {
    name: 'a doubt that a probe settles',
    play: task(1),
    probes: true,
    says: 'approve',
    base: { moment: 'after effect', kind: 'crash' },
  },
  {
    name: 'a doubt that a person settles',
    play: task(1),
    says: 'approve',
    base: { moment: 'before effect', kind: 'crash' },
  },
  { name: 'a schedule that fires twice', play: (people) => people.plan(2), firings: 2 },
  {
    name: 'a message to one who is busy',
    async play(people, { time }) {
      await people.send('Let 1 do it, then sum up.', 'the work')
      await sleep(time, 5)
      await people.send('by the way 0', 'word 0')
    },
    says: 'approve',
  },
  { name: 'a model that is to be asked later', play: task(1), rests: 1 },
  {
    name: 'a worker that comes back when its run is another’s',
    play: task(1),
    says: 'approve',
    base: { moment: 'after reply', kind: 'stopped beyond its lease' },
  },
  { name: 'a function with three steps', play: (people) => people.call('{"order":1}', 'order 1'), says: 'approve' },
]
