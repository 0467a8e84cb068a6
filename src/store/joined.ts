import type { Answer, Joint, Query, Values } from './transition.ts'

/** One request of several askers, or of one. */
export interface Group {
  readonly joint: Joint | undefined
  readonly queries: Query<unknown>[]
  /** Who asked, by his place. */
  readonly askers: number[]
  /** Of their rows; undefined where nobody is told what became of his own. */
  readonly keys: Set<string> | undefined
}

/**
 * Puts statements of the same kind about different rows into one. Where everybody is told what became of his own, two about the
 * same row stay apart, in their order, so that the second sees the first; else the number of changed rows shows it.
 */
export function grouped(queries: readonly Query<unknown>[], isTold: boolean): Group[] {
  const groups: Group[] = []
  const open = new Map<Joint, Group>()
  queries.forEach((query, asker) => {
    const joint = query.given?.joint
    const group = joint === undefined ? undefined : open.get(joint)
    const key = isTold && joint !== undefined && joint.key.length > 0 ? keyOfGiven(query) : undefined
    if (group !== undefined && (key === undefined || !group.keys!.has(key))) {
      group.queries.push(query)
      group.askers.push(asker)
      if (key !== undefined) group.keys!.add(key)
      return
    }
    const begun = { joint, queries: [query], askers: [asker], keys: key === undefined ? undefined : new Set([key]) }
    groups.push(begun)
    if (joint !== undefined) open.set(joint, begun)
  })
  return groups
}

/** What they are given, row by row. */
export const rowsGiven = (queries: readonly Query<unknown>[]): Values => queries.flatMap(({ given }) => given!.values)

/** The answers of the groups become those of the ones that asked. */
export function handedOut(groups: readonly Group[], answers: readonly Answer[], askers: number): Answer[] {
  const all: Answer[] = Array.from({ length: askers })
  groups.forEach((group, index) => {
    if (group.askers.length === 1) all[group.askers[0]!] = answers[index]!
    else share(group, answers[index]!, all)
  })
  return all
}

const UNCHANGED: Answer = { rows: [], changes: 0 }

function share({ joint, queries, askers }: Group, whole: Answer, all: Answer[]): void {
  const { key } = joint!
  const byKey = new Map(whole.rows.map((row) => [key.map((column) => String(row[column])).join(SEPARATOR), row]))
  askers.forEach((asker, place) => {
    const row = byKey.get(keyOfGiven(queries[place]!))
    all[asker] = row === undefined ? UNCHANGED : { rows: [row], changes: 1 }
  })
}

const SEPARATOR = '\u0001'

function keyOfGiven({ given }: Query<unknown>): string {
  const { joint, values } = given!
  if (joint.key.length === 1) return String(values[joint.columns.findIndex(([column]) => column === joint.key[0])])
  return joint.key.map((name) => String(values[joint.columns.findIndex(([column]) => column === name)])).join(SEPARATOR)
}
