import { call } from '../api/client.ts'
import type { Workspace } from '../api/shapes.ts'
import { refreshNow } from './resource.ts'
import { say, sayProblem } from './toast.ts'

export type Verb = 'land' | 'keep' | 'discard' | 'retry'

interface Choice {
  readonly verb: Verb
  readonly word: string
  readonly key: string
  readonly does: string
  readonly look: string
}

const LAND: Choice = { verb: 'land', word: 'Land', key: 'l', does: 'land it', look: 'button-main' }
const RETRY: Choice = { verb: 'retry', word: 'Try again', key: 'r', does: 'try it again', look: 'button-main' }
const KEEP: Choice = { verb: 'keep', word: 'Keep as a branch', key: 'b', does: 'keep it as a branch', look: '' }
const BACK: Choice = { ...KEEP, word: 'Bring back as a branch', does: 'bring it back as a branch' }
const DISCARD: Choice = { verb: 'discard', word: 'Discard', key: 'd', does: 'discard it', look: 'button-bad' }

const GIVE_UP: Choice = { ...DISCARD, does: 'give it up' }

const CHOICES: Readonly<Partial<Record<Workspace['state'], readonly Choice[]>>> = {
  ready: [LAND, KEEP, DISCARD],
  quarantined: [RETRY, KEEP, DISCARD],
  discarded: [BACK],
}

/** What a person can do with it. A landing that is stuck can be given up, whoever has asked for it; any other wish is waited for. */
export function choicesFor({ state, wish, error }: Workspace): readonly Choice[] {
  if (state === 'decided' && error !== undefined) return [GIVE_UP]
  return wish === undefined ? (CHOICES[state] ?? []) : []
}

const DONE: Readonly<Partial<Record<Workspace['state'], (workspace: Workspace) => string>>> = {
  landed: ({ branch, reason }) => `It is on ${branch}${reason === undefined ? '' : `: ${reason}`}.`,
  kept: ({ keptAs }) => `It is kept as the branch ${keptAs ?? ''}.`,
  discarded: ({ error }) =>
    `Discarded. It can be brought back for a while.${error === undefined ? '' : ` But ${error}: what was put in place there could not be taken back.`}`,
}

/** Does it, and says what came of that: work that could not land waits with another reason than before. */
export async function decideOn(workspace: Workspace, verb: Verb): Promise<void> {
  try {
    const now = await call(`workspaces.${verb}`, { run: workspace.runId })
    const done = DONE[now.state]
    if (done !== undefined) say(done(now))
    else if (now.reason !== undefined && now.wish === undefined) say(`It is ${now.state}: ${now.reason}`, 'bad')
  } catch (error) {
    sayProblem(`It was not done (${verb})`, error)
  }
  refreshNow('runs.show', 'runs.statement', 'workspaces.list', 'workspaces.diff', 'status')
}
