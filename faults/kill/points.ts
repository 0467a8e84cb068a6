import type { Dice } from '../simulation/seeded.ts'

/** Named points, and how often a process comes to them in its life; that of a daemon is a few runs long. */
const TABLES = {
  daemon: { begin: 30, commit: 30, statement: 200, file: 60, spawn: 4, socket: 8 },
  supervisor: { file: 10, spawn: 1 },
  'command line': { begin: 2, commit: 2, statement: 24, file: 8, socket: 1 },
  'hook with a daemon': { file: 8, socket: 1 },
  'hook with the store': { begin: 1, commit: 1, statement: 39, file: 8 },
  'hook with the spool': { file: 13 },
} as const satisfies Record<string, Readonly<Record<string, number>>>

/** As doom.cjs reads it: a point, and how many times it is passed until then. Early ones are as likely as late ones. */
export function drawDoom(dice: Dice, whose: keyof typeof TABLES): string {
  const [name, most] = dice.pick(Object.entries(TABLES[whose]))
  const nth = Math.floor((most + 1) ** dice.fraction())
  return `${name} ${dice.pick(['before', 'after'])}:${nth}`
}
