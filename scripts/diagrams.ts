/**
 * Writes the state diagrams of ARCHITECTURE.md from the tables that the code and the database use.
 *
 *   node scripts/diagrams.ts
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { ACTION_MOVES } from '../src/actions/action.ts'
import { APPROVAL_MOVES } from '../src/actions/approval.ts'
import { RUN_MOVES } from '../src/runs/run.ts'
import { OCCURRENCE_MOVES } from '../src/schedule/occurrence.ts'
import { SCHEDULE_MOVES } from '../src/schedule/schedule.ts'
import { MESSAGE_MOVES } from '../src/threads/message.ts'
import { THREAD_MOVES } from '../src/threads/thread.ts'
import { WORKSPACE_MOVES } from '../src/workspace/workspace.ts'

type Moves = Readonly<Record<string, readonly string[]>>

const NOUNS: Readonly<Record<string, Moves>> = {
  run: RUN_MOVES,
  action: ACTION_MOVES,
  approval: APPROVAL_MOVES,
  thread: THREAD_MOVES,
  message: MESSAGE_MOVES,
  schedule: SCHEDULE_MOVES,
  occurrence: OCCURRENCE_MOVES,
  workspace: WORKSPACE_MOVES,
}
const FILE = fileURLToPath(new URL('../ARCHITECTURE.md', import.meta.url))

function diagram(moves: Moves): string {
  const [initial] = Object.keys(moves)
  const arrows = Object.entries(moves).flatMap(([from, targets]) =>
    targets.length === 0 ? [`  ${from} --> [*]`] : targets.map((to) => `  ${from} --> ${to}`),
  )
  return ['```mermaid', 'stateDiagram-v2', `  [*] --> ${initial}`, ...arrows, '```'].join('\n')
}

/** The document with every generated part brought up to date. */
export function withDiagrams(document: string): string {
  return Object.entries(NOUNS).reduce((text, [noun, moves]) => {
    const part = new RegExp(`(<!-- states: ${noun} -->\n)[^]*?(<!-- end -->)`)
    if (!part.test(text)) throw new Error(`ARCHITECTURE.md has no place for the states of a ${noun}`)
    return text.replace(part, `$1\n${diagram(moves)}\n\n$2`)
  }, document)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(FILE, withDiagrams(readFileSync(FILE, 'utf8')))
}
