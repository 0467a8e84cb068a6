/**
 * Everything that a store asks of SQLite, in order, from opening it to closing it: its settings, its tables, each statement with its values, each
 * begin and commit. Replayed with the bare driver on an empty file that makes the same rows, all of them, since the instant is a value here.
 */
import { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SQLInputValue } from 'node:sqlite'

import { pause } from '../product.ts'
import { AnotherWay } from './watch.ts'
import type { Mark, Watch } from './watch.ts'

const WAYS = ['run', 'all', 'get'] as const
type Way = (typeof WAYS)[number]

interface Executed {
  readonly kind: 'statement'
  readonly way: Way
  readonly text: string
  readonly values: readonly SQLInputValue[]
  /** How many it changed, or returned. */
  readonly rows: number
}

type Entry = Mark | Executed | { readonly kind: 'script'; readonly text: string }
export type SqliteRecording = readonly Entry[]

type Execute = (this: StatementSync, ...values: SQLInputValue[]) => unknown

function rowsOf(way: Way, answer: unknown): number {
  if (way === 'run') return Number((answer as { changes: number | bigint }).changes)
  if (way === 'all') return (answer as unknown[]).length
  return answer === undefined ? 0 : 1
}

class Recorder implements Watch {
  readonly entries: Entry[] = []
  #isAside = false

  begin(): void {
    this.entries.push({ kind: 'begin' })
  }

  end(): void {
    this.entries.push({ kind: 'end' })
  }

  rest(ms: number): Promise<void> {
    this.entries.push({ kind: 'rest', ms })
    return pause(ms)
  }

  aside<T>(look: () => T): T {
    this.#isAside = true
    try {
      return look()
    } finally {
      this.#isAside = false
    }
  }

  /** Listens to the driver; returns how to stop. */
  listen(): () => void {
    const undo = WAYS.map((way) => this.#listenTo(way))
    const { exec } = DatabaseSync.prototype as { exec: (this: DatabaseSync, text: string) => void }
    const note = (text: string) => this.#note({ kind: 'script', text })
    DatabaseSync.prototype.exec = function noted(this: DatabaseSync, text: string) {
      exec.call(this, text)
      note(text)
    }
    return () => {
      DatabaseSync.prototype.exec = exec
      for (const each of undo) each()
    }
  }

  #listenTo(way: Way): () => void {
    const own = StatementSync.prototype[way] as Execute
    const note = (entry: Entry) => this.#note(entry)
    StatementSync.prototype[way] = function noted(this: StatementSync, ...values: SQLInputValue[]) {
      const answer = own.apply(this, values)
      note({ kind: 'statement', way, text: this.sourceSQL, values, rows: rowsOf(way, answer) })
      return answer
    } as never
    return () => void (StatementSync.prototype[way] = own as never)
  }

  #note(entry: Entry): void {
    if (!this.#isAside) this.entries.push(entry)
  }
}

export async function recordSqlite(work: (watch: Watch) => Promise<void>): Promise<SqliteRecording> {
  const recorder = new Recorder()
  const stop = recorder.listen()
  try {
    await work(recorder)
  } finally {
    stop()
  }
  return recorder.entries
}

export async function replaySqlite(recording: SqliteRecording, path: string, watch: Watch): Promise<void> {
  const database = new DatabaseSync(path, { defensive: false })
  const known = new Map<string, StatementSync>()
  const prepared = (text: string): StatementSync => {
    let statement = known.get(text)
    if (statement === undefined) known.set(text, (statement = database.prepare(text)))
    return statement
  }
  const isFirst = isOnce()
  try {
    for (const [place, entry] of recording.entries()) {
      if (entry.kind === 'statement') execute(prepared(entry.text), entry)
      else if (entry.kind === 'script') database.exec(entry.text)
      else if (entry.kind === 'rest') await watch.rest(entry.ms)
      else if (entry.kind === 'end') watch.end()
      else {
        // What is repeated a thousand times was prepared before, in the product too.
        if (isFirst()) for (const each of recording.slice(place)) if (each.kind === 'statement') prepared(each.text)
        watch.begin()
      }
    }
  } finally {
    database.close()
  }
}

function execute(statement: StatementSync, { way, text, values, rows }: Executed): void {
  const now = rowsOf(way, statement[way](...values))
  if (now !== rows) throw new AnotherWay(text, rows, now)
}

function isOnce(): () => boolean {
  let isNew = true
  return () => {
    const was = isNew
    isNew = false
    return was
  }
}
