import { accessSync, constants, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { errorCode } from '../base/files.ts'

/** What lies where in the home folder. */
export const homePaths = (home: string) => ({
  database: join(home, 'holdfast.db'),
  /** One folder for each command that was started, until its result is recorded. */
  work: join(home, 'work'),
  /** One folder for each process of an MCP server, as long as it runs. */
  mcpServers: join(home, 'mcp'),
  /** One folder for each git transaction: the tree that its run works in. */
  workspaces: join(home, 'workspaces'),
  /** Empty git folders with safe settings, one a repository; they may be removed at any time. */
  gitRooms: join(home, 'git'),
  /** Compiled code of the supervisor. */
  codeCache: join(home, 'cache'),
  /** Records of hooks that could not be read, set aside. */
  corrupt: join(home, 'spool', 'corrupt'),
  /** What whoever talks to the daemon must show; for its owner only. */
  token: join(home, 'token'),
  /** What hooks show: it is good for telling us what happened, and for nothing else. */
  recordToken: join(home, 'record-token'),
  /** From which boots it was opened, on a machine that has no id of its own. */
  boots: join(home, 'boots'),
  /** Where the daemon of this folder listens. */
  daemon: join(home, 'daemon.json'),
})

/** A command's folder follows its mark, which stays the same when another worker takes the run over. */
export const commandFolder = (home: string, mark: string) => join(homePaths(home).work, mark)

/** Another user's: what is in it cannot be seen from here. One that is not there is everybody's. */
export function isBarred(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    return false
  } catch (error) {
    return errorCode(error) !== 'ENOENT'
  }
}

/** Where the window of this folder's daemon is, while it has one. */
export function readWindowUrl(home: string): string | undefined {
  try {
    const { url } = JSON.parse(readFileSync(homePaths(home).daemon, 'utf8')) as { readonly url?: unknown }
    return typeof url === 'string' ? url : undefined
  } catch {
    return undefined
  }
}
