import { copyFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { StatementSync } from 'node:sqlite'

type Options = ConstructorParameters<typeof DatabaseSync>[1]

/** A connection and what was prepared on it. */
export interface Kept {
  readonly database: DatabaseSync
  readonly statements: Map<string, StatementSync>
}

/** More than a world has; those that are built from fragments are without end. */
const MOST_STATEMENTS = 1_000

/**
 * The one database of worlds that come one after the other. To open a connection and to prepare statements takes as long as to
 * run them, so both are kept for the next world: all that a process of it has to itself is whether it is open.
 */
export class SharedFile {
  readonly path: string
  readonly #idle: Kept[] = []
  readonly #keeper: DatabaseSync
  readonly #restoring: readonly StatementSync[]

  constructor(template: string) {
    this.path = join(dirname(template), 'shared.db')
    copyFileSync(template, this.path)
    this.#keeper = new DatabaseSync(this.path, { enableForeignKeyConstraints: false })
    this.#keeper.exec(`attach '${template}' as template`)
    this.#restoring = this.#tables().flatMap((table) => [
      this.#keeper.prepare(`delete from main.${table}`),
      this.#keeper.prepare(`insert into main.${table} select * from template.${table}`),
    ])
  }

  take(options: Options): Kept {
    const kept = this.#idle.pop() ?? { database: new DatabaseSync(this.path, options), statements: new Map() }
    if (kept.statements.size > MOST_STATEMENTS) kept.statements.clear()
    return kept
  }

  /** As if it were closed: what was not committed is gone. */
  giveBack(kept: Kept): void {
    if (kept.database.isTransaction) kept.database.exec('rollback')
    this.#idle.push(kept)
  }

  /** As the template is, and nothing in its log: a world must not notice which ones there were before. */
  restore(): void {
    this.#keeper.exec('begin immediate')
    for (const statement of this.#restoring) statement.run()
    this.#keeper.exec('commit; pragma wal_checkpoint(truncate)')
  }

  /** The one that counts last: it counts what is put back. */
  #tables(): string[] {
    const tables = this.#keeper.prepare(`select name from main.sqlite_schema where type = 'table'`).all()
    return tables.map(({ name }) => String(name)).toSorted((a, b) => Number(isCounter(a)) - Number(isCounter(b)))
  }
}

const isCounter = (table: string) => table === 'sqlite_sequence'
