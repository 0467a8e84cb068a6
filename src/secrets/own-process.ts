import { gatherKnown } from './gather.ts'
import { drawVeil } from './veil.ts'

/** What the environment alone gives away: for a process that has not read its configuration, or will not. */
export const hideEnvironment = (environment: Readonly<Record<string, string | undefined>>): void =>
  drawVeil(gatherKnown({ environment, store: environment['HOLDFAST_STORE'] }))
