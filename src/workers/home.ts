import { join } from 'node:path'

/** What lies where in the home folder. */
export const homePaths = (home: string) => ({
  database: join(home, 'holdfast.db'),
  /** One folder for each command that was started, until its result is recorded. */
  work: join(home, 'work'),
  /** Compiled code of the supervisor. */
  codeCache: join(home, 'cache'),
})

/** A command's folder follows its mark, which stays the same when another worker takes the run over. */
export const commandFolder = (home: string, mark: string) => join(homePaths(home).work, mark)
