import type { Campaign, Method, Outcome } from '../method.ts'
import { plantedBugs } from './patch.ts'
import type { Planted } from './patch.ts'
import { PrivateTree } from './private-tree.ts'
import { runTests } from './run-tests.ts'
import type { Tested, Variables } from './run-tests.ts'

/** The suite is what is tested here: every bug that somebody might make has to turn one of its tests red. */
export const planted: Method = {
  name: 'planted',
  title: 'Bugs that are planted in a copy of the sources, one at a time; each has to be caught by a test of the suite',
  cases: 'planted bugs',
  size: async () => plantedBugs().length,
  run: (campaign) => plant(plantedBugs(), campaign),
}

/** `variables`: what the tests are told besides what this process is. */
export async function plant(
  bugs: readonly Planted[],
  { first, most, isOver, tell }: Campaign,
  variables: Variables = {},
): Promise<void> {
  const tree = new PrivateTree()
  const stop = () => {
    tree.remove()
    process.exit(130)
  }
  process.once('SIGINT', stop)
  try {
    const chosen = bugs.map((bug, index) => ({ bug, seed: index + 1 })).slice(first - 1, first - 1 + most)
    const bed = new Bed(tree, variables)
    for (const { bug, seed } of chosen) {
      if (isOver()) return
      tell({ seed, ...(await judge(bed, bug)) })
    }
  } finally {
    process.removeListener('SIGINT', stop)
    tree.remove()
  }
}

async function judge(bed: Bed, bug: Planted): Promise<Omit<Outcome, 'seed'>> {
  const found = await bed.judge(bug)
  // Without its number, which is only its place in the list.
  const faults = { [bug.name.replace(/^\d+-/, '')]: 1 }
  const problems = found.kind === 'caught' ? [] : [`${bug.name} (${bug.breaks}): ${found.problem}`]
  const peaks = found.kind === 'caught' ? { peaks: { 'seconds until it was caught': found.seconds } } : {}
  return { faults, runs: 0, effects: 0, ...peaks, problems }
}

type Judged =
  | { readonly kind: 'caught'; readonly seconds: number }
  | { readonly kind: 'not-caught'; readonly problem: string }

const notCaught = (problem: string): Judged => ({ kind: 'not-caught', problem })

/** Where bugs are planted, one at a time. */
class Bed {
  readonly #tree: PrivateTree
  readonly #variables: Variables
  /** Of each test file, why it proves nothing. */
  readonly #sick = new Map<string, string | undefined>()

  constructor(tree: PrivateTree, variables: Variables) {
    this.#tree = tree
    this.#variables = variables
  }

  async judge({ path, tests }: Planted): Promise<Judged> {
    const before = await this.#sickAmong(tests)
    if (before !== undefined) return notCaught(before)
    const trouble = this.#tree.plant(path)
    if (trouble !== undefined) return notCaught(`it does not fit the sources any more: ${trouble}`)
    const began = performance.now()
    const tested = await this.#run(tests)
    this.#tree.pullOut(path)
    if (tested.kind === 'red') return { kind: 'caught', seconds: Math.round((performance.now() - began) / 1_000) }
    const files = tests.join(', ')
    return notCaught(tested.kind === 'green' ? `not caught by ${files}` : `${files} could not be run: ${tested.why}`)
  }

  /** Tests that are red without any bug prove nothing. Each file is looked at once. */
  async #sickAmong(files: readonly string[]): Promise<string | undefined> {
    for (const file of files) if (!this.#sick.has(file)) this.#sick.set(file, await this.#whySick(file))
    return files.map((file) => this.#sick.get(file)).find((why) => why !== undefined)
  }

  /** One that is red on a busy machine has another chance: all bugs that it should catch depend on it. */
  async #whySick(file: string): Promise<string | undefined> {
    const first = await this.#run([file])
    const tested = first.kind === 'green' ? first : await this.#run([file])
    if (tested.kind === 'green') return undefined
    return `${file} is red without any bug: ${tested.kind === 'red' ? tested.failed.join('; ') : tested.why}`
  }

  #run(files: readonly string[]): Promise<Tested> {
    return runTests(this.#tree.root, files, this.#variables)
  }
}
