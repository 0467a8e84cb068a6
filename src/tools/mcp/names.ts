import { createHash } from 'node:crypto'

/*
 * What models call a tool of an MCP server: `files__read_file`. Providers take letters, digits, _ and -, 64 at most.
 * A server's name has no double underscore and does not end in one, so the first double underscore ends it, and tools
 * of two servers never have the same name. What had to be changed or cut gets a few digits of its hash instead: the
 * name of one tool never depends on which others there are, and stays the same from run to run.
 */

const LONGEST = 64
const HASH_DIGITS = 8
const FOREIGN = /[^A-Za-z0-9_-]/g

export const SERVER_NAME = /^[A-Za-z](?:[A-Za-z0-9-]|_(?=[A-Za-z0-9-])){0,31}$/

export const serverPrefix = (server: string): string => `${server}__`

export function modelToolName(server: string, tool: string): string {
  const prefix = serverPrefix(server)
  const plain = tool.replace(FOREIGN, '_')
  if (plain === tool && prefix.length + tool.length <= LONGEST) return prefix + tool
  const hash = createHash('sha256').update(tool).digest('hex').slice(0, HASH_DIGITS)
  return `${prefix}${plain.slice(0, LONGEST - prefix.length - HASH_DIGITS - 1)}_${hash}`
}
