import type { Tool } from '../loop/ports.ts'
import type { FunctionPorts } from './perform.ts'

// Known by name, not by class: the configuration may come with a copy of this package of its own.
export const TOOL = Symbol.for('holdfast.tool')

/** A tool that is a function of this process. */
export interface DefinedTool {
  readonly name: string
  readonly [TOOL]: (ports: FunctionPorts) => Tool
}

export const isDefinedTool = (value: unknown): value is DefinedTool =>
  typeof value === 'object' && value !== null && TOOL in value

export const openDefinedTool = (tool: DefinedTool, ports: FunctionPorts): Tool => tool[TOOL](ports)
