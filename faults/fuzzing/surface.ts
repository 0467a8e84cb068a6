import type { Dice } from '../simulation/seeded.ts'

/** What is fed: texts in an order that the surface knows. Cutting one down means leaving texts out, and parts of them. */
export type Input = readonly string[]

/** A place where what somebody else wrote comes in. */
export interface Surface {
  readonly name: string
  /** `folder` is its own, and is removed afterwards. */
  open(folder: string): Promise<OpenSurface>
}

export interface OpenSurface {
  /** How many inputs go in side by side; 1 if it is not said. */
  readonly width?: number
  /** Before the inputs of a batch are drawn. */
  begin?(dice: Dice): Promise<void>
  draw(dice: Dice): Input
  /** What was wrong; empty, if it was answered as it should be. Any texts may come, not only drawn ones. */
  feed(input: Input): Promise<readonly string[]>
  /** After the inputs of a batch: what they left behind that should not be there. */
  settle?(): Promise<readonly string[]>
  /** How many runs came of it so far. */
  runs?(): number
  close(): Promise<void>
}

/** As V8 writes it, which is also quick to look for in a text of any kind. */
const STACK = /\n {4}at [^\n]{1,300}:\d+:\d+/

/** Where in the code something happened is for the operator's log, never for whoever sent the input. */
export const showsStack = (text: string): boolean => STACK.test(text)
