/** Real processes do not take the same way twice: a shorter plan gets so many chances to fail. */
const CHANCES = 3
/** However long the plan is. */
const MOST_TRIES = 60

export interface Shortest<Plan> {
  readonly plan: Plan
  readonly problems: readonly string[]
}

/** Leaves out what is not needed for it to fail; undefined: even the whole plan did not fail again. */
export async function leastThatFails<Plan>(
  whole: Plan,
  shorter: (plan: Plan) => Iterable<Plan>,
  problemsOf: (plan: Plan) => Promise<readonly string[]>,
): Promise<Shortest<Plan> | undefined> {
  let tries = 0
  const failing = async (plan: Plan): Promise<Shortest<Plan> | undefined> => {
    for (let chance = 0; chance < CHANCES && tries < MOST_TRIES; chance++) {
      tries += 1
      const problems = await problemsOf(plan)
      if (problems.length > 0) return { plan, problems }
    }
    return undefined
  }
  let least = await failing(whole)
  for (let found = least; found !== undefined; least = found ?? least) {
    const candidates = shorter(found.plan)
    found = undefined
    for (const candidate of candidates) if ((found = await failing(candidate)) !== undefined) break
  }
  return least
}

/** As the runner prints it. */
export const inWords = <Plan>(found: Shortest<Plan> | undefined, plan: (plan: Plan) => string): string =>
  found === undefined
    ? 'its plan did not fail again: real processes do not take the same way twice'
    : [plan(found.plan), ...found.problems].join('\n  ')
