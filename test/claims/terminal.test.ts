import { expect, test } from 'vitest'

import { RUN_STATES, isTerminal } from '../../src/runs/run.ts'
import { allNodes, dottedName, parse } from '../tidy/syntax.ts'
import type { Node } from '../tidy/syntax.ts'
import { sourcesBelow } from '../tidy/tree.ts'
import type { SourceFile } from '../tidy/tree.ts'

interface Write {
  readonly path: string
  /** The statement, with `${}` where a value or a fragment goes in. */
  readonly text: string
}

/** Every statement of the sources that changes a run. */
function writesTo(table: string, files: readonly SourceFile[]): Write[] {
  return files.flatMap((file) =>
    allNodes(parse(file), 'TaggedTemplateExpression')
      .filter((node) => dottedName(node['tag']) === 'sql')
      .map((node) => ({ path: file.path, text: templateText(node['quasi'] as Node, file.text) }))
      .filter(({ text }) => new RegExp(`\\b(update|delete from)\\s+${table}\\b`, 'i').test(text)),
  )
}

const templateText = (quasi: Node, source: string) => source.slice(quasi.start + 1, quasi.end - 1)

const sources = sourcesBelow('src')
const writes = writesTo('runs', sources)

/** `${holds}` is a fragment that the callers of `writeEnd` give; they are looked at below. */
const GUARD = /\bstate (=|in) |\bfence = |\$\{holds\}/

/** Holds the row and changes nothing of it. */
const HOLD = /^update runs set fence = fence where id = \$\{\w+\}$/

/** What a statement for many rows has changed comes back by its key, or is counted. */
const JOINT = /\$\{GIVEN\} where /

/** Only what has ended is ever deleted, and that is looked at in the same transaction. */
const FORGOTTEN = /^delete from runs where id in \$\{\w+\} and ended_at is not null$/

function unguarded({ text }: Write): boolean {
  if (HOLD.test(text) || FORGOTTEN.test(text)) return false
  const where = text.slice(text.search(/\bwhere\b/))
  return !/\bwhere\b/.test(text) || !GUARD.test(where) || !(/\breturning\b/.test(where) || JOINT.test(text))
}

test('every write of a run carries the condition that makes it legal and returns what it won [T7]', () => {
  expect(writes.length).toBeGreaterThanOrEqual(7)
  expect(writes.filter(unguarded)).toEqual([])
})

test('the end of a run is written in one place, and only with the state it ends from [T7]', () => {
  const finish = sources.find(({ path }) => path === 'src/runs/finish.ts')!
  const held = Array.from(finish.text.matchAll(/(?:writeEnd\(\s*|const holds = )sql`([^`]*)`/g), (match) => match[1]!)
  expect(held).toHaveLength(4)
  for (const condition of held)
    expect(condition).toMatch(/^id = .* and state (= 'running'|in \('(queued|running)', 'parked'\))$/)
})

/** The state that a statement sets: a literal, or `${…}` for one that is not known from the text. */
function stateSet({ text }: Write): string | undefined {
  return (
    /\bset\b[^]*?\bstate = ('(\w+)'|\$\{)/.exec(text.slice(0, text.search(/\bwhere\b/)))?.[2] ??
    (/\bset\s+(?:[^']*,\s*)?state = \$\{/.test(text) ? '${}' : undefined)
  )
}

test('no other file writes a terminal state, or one that cannot be read from the statement [T7]', () => {
  const states = writes.map((write) => ({ path: write.path, state: stateSet(write) }))
  const known = new Set<string | undefined>([...RUN_STATES.filter((state) => !isTerminal(state)), undefined])
  expect(states.filter(({ state }) => !known.has(state))).toEqual([
    { path: 'src/runs/finish.ts', state: '${}' },
    // That of runs on which nothing hangs.
    { path: 'src/runs/finish.ts', state: 'succeeded' },
  ])
  expect(states.filter(({ state }) => state !== undefined).length).toBeGreaterThanOrEqual(4)
})

test('a planted write without a guard, and a planted end, are found', () => {
  const planted = (text: string) => writesTo('runs', [{ path: 'a.ts', text: `run(sql\`${text}\`)` }])
  expect(planted("update runs set state = 'failed' where id = ${id} returning *").filter(unguarded)).toHaveLength(1)
  expect(planted("update runs set state = 'failed' where id = ${id} and fence = ${f}").filter(unguarded)).toHaveLength(
    1,
  )
  expect(planted('delete from runs').filter(unguarded)).toHaveLength(1)
  expect(planted('delete from runs where id in ${ids}').filter(unguarded)).toHaveLength(1)
  expect(planted("update runs set state = 'failed' from ${GIVEN} where id = given.id").filter(unguarded)).toHaveLength(
    1,
  )
  expect(planted("update runs set code = 'x', state = 'failed' where id = 1").map(stateSet)).toEqual(['failed'])
  expect(planted('update runs set state = ${state}, code = 1 where id = 1').map(stateSet)).toEqual(['${}'])
})
