import { join } from 'node:path'

import type { RunView } from '../../src/runs/view.ts'
import { claimRun, wordsOf } from './claims.ts'
import type { Place } from './place.ts'
import { REPOSITORY, WORK } from './repository.ts'

/** Runs that work in a git transaction, in a repository that was there before. */
export const LANDINGS: Readonly<Record<string, (place: Place) => Promise<void>>> = {
  /** On the branch that is checked out. */
  landing: async (place) => void (await work(place, WORK, 'landed')),
  /** On one that nobody has checked out any more: its user has gone to another meanwhile, and has synced that. */
  landingAside: async (place) => void (await work(place, `${WORK}; ${goElsewhere(place)}`, 'landed')),
  /** With the commits of the run itself. */
  landingCommits: async (place) => {
    const commit = 'git add -A && git -c user.name=It -c user.email=it@example.com commit -qm "By itself"'
    await work(place, `${WORK}; ${commit}`, 'landed', '--workspace-commits', 'keep')
  },
  /** Of a run that failed: it lands nowhere, and a person keeps it. */
  keeping: async (place) => {
    const { id } = await work(place, `${WORK}; exit 1`, 'discarded')
    const kept = await place.holdfast('--json', 'workspace', 'keep', id, '--branch', 'kept')
    place.claim(`the work of ${id} is kept`, { workspace: { run: id, state: 'kept' } }, wordsOf(kept))
  },
}

/** By hand, each synced before it gets its name: git syncs neither, and a half of one of its own would be damage that nobody here has done. */
function goElsewhere({ root }: Place): string {
  const git = join(root, REPOSITORY, '.git')
  const put = (words: string, folder: string, name: string) =>
    `echo ${words} > ${git}/new && sync ${git}/new && mv ${git}/new ${folder}/${name} && sync ${folder}`
  const branch = put('"$tip"', `${git}/refs/heads`, 'elsewhere')
  return `read -r tip < ${git}/refs/heads/main && ${branch} && ${put('ref: refs/heads/elsewhere', git, 'HEAD')}`
}

async function work(
  place: Place,
  line: string,
  state: 'landed' | 'discarded',
  ...options: readonly string[]
): Promise<RunView> {
  const workspace = ['--workspace', join(place.root, REPOSITORY), '--workspace-mode', 'transaction', ...options]
  const told = await place.holdfast('--json', 'run', ...workspace, '--', 'sh', '-c', line)
  if (!told.stdout.includes(`"${state}"`)) throw new Error(`it was not ${state}: ${told.stdout}${told.stderr}`)
  const run = claimRun(place, told)
  place.claim(`the work of ${run.id} is ${state}`, { workspace: { run: run.id, state } }, wordsOf(told))
  return run
}
