import { integer, row } from './row.ts'
import { now, sql } from './sql.ts'
import { one, single } from './transition.ts'

/** What the database's own clock says: on a server it is the server's, else that of this machine. */
export const storeTime = single(() => one(row({ at: integer }), sql`select cast(${now} as bigint) as at`))
