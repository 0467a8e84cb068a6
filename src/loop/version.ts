import { digestOf } from '../base/canonical-json.ts'
import type { Tool } from './ports.ts'

const known = new WeakMap<Tool, string>()

/** Which tool this is, as a person who approves it must know it: another description or another schema is another tool. */
export function versionOf(tool: Tool | undefined): string {
  if (tool === undefined) return 'gone'
  const made = known.get(tool)
  if (made !== undefined) return made
  const { name, description, inputSchema, effect, repeat, idempotent, definition = null } = tool
  const version = digestOf({ name, description, inputSchema, effect, repeat, idempotent, definition }).slice(0, 16)
  known.set(tool, version)
  return version
}
