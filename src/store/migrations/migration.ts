/** The few words in which the two databases' DDL differ. Everything else in a migration is written once. */
export interface Dialect {
  /** The text of an id: compared byte by byte, so that a prefix is a range of the index. */
  readonly key: string
  /** A 64-bit integer. */
  readonly integer: string
  /** An ascending number that the database gives: the primary key. */
  readonly serial: string
  /** Behind a table's closing parenthesis. */
  readonly tableEnd: string
  /** The same for a table whose rows lie in the order of its primary key, where there is such a thing. */
  readonly clusteredEnd: string
}

export const SQLITE: Dialect = {
  key: 'text',
  integer: 'integer',
  serial: 'integer primary key autoincrement',
  tableEnd: ' strict',
  clusteredEnd: ' strict, without rowid',
}

export const POSTGRES: Dialect = {
  key: 'text collate "C"',
  integer: 'bigint',
  serial: 'bigint generated always as identity primary key',
  tableEnd: '',
  clusteredEnd: '',
}

/** Forward only: a migration that was released is never edited, a new one follows it. */
export interface Migration {
  readonly number: number
  readonly name: string
  readonly statements: (dialect: Dialect) => readonly string[]
}
