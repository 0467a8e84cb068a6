import { linkSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { describeError } from '../../src/base/errors.ts'
import { replaySpool } from '../../src/hooks/spool.ts'
import { readWholeOutput } from '../../src/processes/output.ts'
import { takeOver } from '../../src/processes/take-over.ts'
import { createRuntime } from '../../src/runtime.ts'
import type { Runtime } from '../../src/runtime.ts'
import type { Row } from '../../src/store/row.ts'
import { raw } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { all, single } from '../../src/store/transition.ts'
import { commandFolder } from '../../src/workers/home.ts'
import { violations } from '../../test/support/invariants.ts'
import { settleEverything } from '../../test/support/settle.ts'
import type { State } from './disk.ts'
import { hasRepository, wrongInRepository } from './examine-repository.ts'
import type { Claim } from './place.ts'

/** What somebody knew when the power failed. */
export interface Known {
  readonly claims: readonly Claim[]
  /** Lines of the ledger. */
  readonly effects: readonly string[]
}

/** Makes the folder what a power loss left, and nothing else. */
export function rebuild(root: string, { folders, files, second, executables, pointers }: State): void {
  rmSync(root, { recursive: true, force: true })
  mkdirSync(root, { recursive: true })
  for (const folder of folders) mkdirSync(join(root, folder), { recursive: true })
  for (const [path, content] of files)
    if (!second.has(path))
      writeFileSync(join(root, path), isBoot(path) ? 'another one' : content(), {
        mode: executables.has(path) ? 0o755 : 0o644,
      })
  for (const [path, first] of second) linkSync(join(root, first), join(root, path))
  for (const [path, target] of pointers) symlinkSync(target, join(root, path))
}

/** Where a tree says in which life of the machine it was made: this is the next one. */
const isBoot = (path: string) => /^home\/workspaces\/.*\/boot$/.test(path)

/** Opens what is there as the program does after a restart, and tells what is wrong with it. */
export async function examine(root: string, known: Known, isSettled: boolean): Promise<string[]> {
  const home = join(root, 'home')
  const warnings: string[] = []
  const warn = (text: string) => void warnings.push(text)
  try {
    const environment = { PATH: process.env['PATH'] ?? '', HOME: root }
    const runtime = await createRuntime({ home, warn, environment })
    try {
      await replaySpool({ ...runtime, warn })
      return [
        ...(await runtime.store.check()).map((damage) => `damaged: ${damage}`),
        ...(await violations(runtime.store)),
        ...warnings.map((warning) => `warned: ${warning}`),
        ...(await missingRows(runtime.store, known.claims)),
        ...missingCopies(root, known.claims),
        ...(await missingOutput(runtime.store, home, known.claims)),
        ...(await forgottenEffects(runtime.store, home, known.effects)),
        ...(await inTheEnd(root, runtime, known, isSettled)),
      ]
    } finally {
      await runtime.close()
    }
  } catch (error) {
    return [`it could not be opened: ${describeError(error)}`]
  }
}

const asIs: Row<Record<string, unknown>> = { decode: (record) => record }

const ask = (store: Store, text: string) => store.read(single(() => all(asIs, raw(text))))

const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`

async function missingRows(store: Store, claims: readonly Claim[]): Promise<string[]> {
  const lost = claims.flatMap(({ what, rows }) =>
    rows === undefined ? [] : [`select ${quoted(what)} as what where not exists (${rows})`],
  )
  if (lost.length === 0) return []
  return (await ask(store, lost.join(' union all '))).map(({ what }) => `acknowledged and lost: ${String(what)}`)
}

function missingCopies(root: string, claims: readonly Claim[]): string[] {
  return claims.flatMap(({ what, backup }) => {
    if (backup === undefined) return []
    try {
      const copy = new DatabaseSync(join(root, backup.path), { readOnly: true })
      try {
        const isWhole = Object.values(copy.prepare('pragma quick_check').get() ?? {})[0] === 'ok'
        return isWhole && copy.prepare(backup.rows).get() !== undefined ? [] : [`acknowledged and lost: ${what}`]
      } finally {
        copy.close()
      }
    } catch (error) {
      return [`acknowledged and lost: ${what} (${describeError(error)})`]
    }
  })
}

async function missingOutput(store: Store, home: string, claims: readonly Claim[]): Promise<string[]> {
  const missing: string[] = []
  for (const { what, output } of claims) {
    if (output === undefined) continue
    const [attempt] = await ask(store, `select mark from attempts where run_id = '${output.run}'`)
    const text = await readWholeOutput(commandFolder(home, String(attempt?.['mark'])), 'stdout')
    if (text?.length !== output.bytes) missing.push(`acknowledged and lost: ${what} (${text?.length ?? 0} bytes of it)`)
  }
  return missing
}

/** What has happened in the world must be known to have begun: else it would be done again. */
async function forgottenEffects(store: Store, home: string, effects: readonly string[]): Promise<string[]> {
  const forgotten: string[] = []
  for (const effect of new Set(effects)) if (!(await isKnown(store, home, effect))) forgotten.push(effect)
  return forgotten.map((effect) => `it happened, and would be done again: ${effect}`)
}

async function isKnown(store: Store, home: string, effect: string): Promise<boolean> {
  const [first = '', second = '', third = ''] = effect.split(' ')
  if (first === 'step')
    return isFound(
      store,
      `select 1 from steps s join runs r on r.seq = s.run_seq where r.id = '${second}' and s.name = '${third}'`,
    )
  if (second !== '') return isFound(store, `select 1 from actions where id = '${second}' and tries > 0`)
  const [run] = await ask(
    store,
    `select r.state, a.mark from runs r left join attempts a on a.run_id = r.id where r.request like '%"${first}"%' order by a.number desc`,
  )
  if (run?.['state'] !== 'running') return run !== undefined && run['state'] !== 'queued'
  const mark = String(run['mark'])
  return (await takeOver(commandFolder(home, mark), 'the one who looks', { mark })).kind !== 'never-started'
}

const isFound = async (store: Store, text: string) => (await ask(store, text)).length > 0

/** Files are recovered by a worker that really works. */
async function inTheEnd(root: string, runtime: Runtime, { claims }: Known, isSettled: boolean): Promise<string[]> {
  if (hasRepository(root)) return wrongInRepository(root, runtime, claims)
  return isSettled ? unsettled(runtime.store) : []
}

async function unsettled(store: Store): Promise<string[]> {
  try {
    await settleEverything(store)
    return []
  } catch (error) {
    return [`it does not come to an end: ${describeError(error)}`]
  }
}
