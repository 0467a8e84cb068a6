import type { Given, Joint, Query } from '../transition.ts'
import type { Answered } from './lane.ts'
import type { Renderer, Request } from './statement.ts'

/** Statements that go out together, and how their answers become those of the ones that asked. */
export interface Joined {
  readonly requests: readonly Request[]
  answers(answered: readonly Answered[]): Answered[]
}

/** One request of several askers, or of one. */
interface Group {
  readonly joint: Joint | undefined
  /** Who asked, by his place. */
  readonly askers: number[]
  readonly given: Given[]
  readonly keys: Set<string>
}

/**
 * Puts statements of the same kind about different rows into one: parsing, planning and the way there are paid once for
 * all of them (bench/workloads). Two about the same row stay apart, in their order, so that the second sees the first.
 */
export function join(queries: readonly Query<unknown>[], renderer: Renderer): Joined {
  const groups: Group[] = []
  const open = new Map<Joint, Group>()
  queries.forEach((query, asker) => {
    const { given } = query
    const group = given === undefined ? undefined : open.get(given.joint)
    const key = given === undefined ? '' : keyOfGiven(given)
    if (given !== undefined && group !== undefined && (given.joint.key.length === 0 || !group.keys.has(key))) {
      group.askers.push(asker)
      group.given.push(given)
      group.keys.add(key)
      return
    }
    const begun = {
      joint: given?.joint,
      askers: [asker],
      given: given === undefined ? [] : [given],
      keys: new Set([key]),
    }
    groups.push(begun)
    if (given !== undefined) open.set(given.joint, begun)
  })
  return {
    requests: groups.map(({ joint, askers, given }) =>
      joint === undefined || askers.length === 1
        ? renderer.request(queries[askers[0]!]!.sql)
        : renderer.many(joint, given),
    ),
    answers: (answered) => handOut(groups, answered, queries.length),
  }
}

function handOut(groups: readonly Group[], answered: readonly Answered[], askers: number): Answered[] {
  const answers: Answered[] = Array.from({ length: askers })
  groups.forEach((group, index) => {
    const whole = answered[index]!
    if (group.joint === undefined || group.askers.length === 1) answers[group.askers[0]!] = whole
    else share(group, group.joint, whole, answers)
  })
  return answers
}

function share({ askers, given }: Group, joint: Joint, whole: Answered, answers: Answered[]): void {
  const { command } = whole
  const byKey = new Map(whole.rows.map((row) => [joint.key.map((column) => String(row[column])).join(SEPARATOR), row]))
  askers.forEach((asker, place) => {
    const row = joint.key.length === 0 ? undefined : byKey.get(keyOfGiven(given[place]!))
    answers[asker] = { rows: row === undefined ? [] : [row], changes: row === undefined ? 0 : 1, command }
  })
}

const SEPARATOR = '\u0001'

function keyOfGiven({ joint, values }: Given): string {
  return joint.key.map((name) => String(values[joint.columns.findIndex(([column]) => column === name)])).join(SEPARATOR)
}
