import type { Tool } from '../loop/ports.ts'
import { fileTools } from './files.ts'
import { httpTools, type HttpOptions } from './http.ts'
import { parallelShellTool } from './parallel-shell.ts'
import { shellTool } from './shell.ts'
import type { CommandPlace } from './supervised-command.ts'

export interface BuiltInOptions {
  readonly place: CommandPlace
  /** What the file tools may touch; relative paths start from the first. */
  readonly roots: readonly [string, ...string[]]
  readonly http?: HttpOptions
}

/** The tools of this folder, by the names of `built-in-names.ts`. */
export function builtInTools({ place, roots, http }: BuiltInOptions): ReadonlyMap<string, Tool> {
  const tools = [shellTool(place), parallelShellTool(place), ...fileTools(roots), ...httpTools(http)]
  return new Map(tools.map((tool) => [tool.name, tool]))
}
