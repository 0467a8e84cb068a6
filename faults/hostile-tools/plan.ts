import { Dice } from '../simulation/seeded.ts'

/** What a command does so as not to end. */
const TRICKS = [
  'volume',
  'complaints',
  'away',
  'nohup',
  'bare',
  'bomb',
  'comets',
  'frozen',
  'silent',
  'leaves',
] as const
export type Trick = 'stubborn' | 'scrub' | (typeof TRICKS)[number]

/** As the machine has it, or the weaker ones that are left where a cgroup, or a namespace too, cannot be had. */
export const STRENGTHS = ['the best', 'no cgroup', 'no namespace either'] as const
export type Strength = (typeof STRENGTHS)[number]

/** How it comes to be stopped. */
const ENDINGS = ['cancelled', 'cancelled', 'cancelled', 'timeout', 'daemon killed', 'supervisor killed'] as const
export type Ending = (typeof ENDINGS)[number]

export interface Plan {
  readonly tricks: readonly Trick[]
  readonly strength: Strength
  readonly containment: string
  readonly ending: Ending
  /** From when on: as soon as it is claimed, or when everything was begun. */
  readonly from: 'its claim' | 'its tricks'
  readonly afterMs: number
}

/** What a daemon was left with, and the containment in force then. */
export type Kept = readonly [strength: Strength, containment: string]

export function planOf(seed: number, kept: readonly Kept[]): Plan {
  const dice = new Dice(Math.imul(seed, 0x85ebca6b))
  dice.fraction()
  const [strength, containment] = dice.pick(kept)
  const some = TRICKS.filter(() => dice.chance(0.35))
  const tricks: Trick[] = [...(dice.chance(0.7) ? (['stubborn'] as const) : []), ...some]
  // By its mark alone nothing is found that has no environment; the kernel's containments do not need one.
  if (['cgroup', 'pid-namespace'].includes(containment) && dice.chance(0.4)) tricks.push('scrub')
  return {
    tricks,
    strength,
    containment,
    ending: dice.pick(ENDINGS),
    from: dice.chance(0.3) ? 'its claim' : 'its tricks',
    afterMs: dice.below(400),
  }
}

/** With one trick less. */
export const shorterThan = (plan: Plan): Plan[] =>
  plan.tricks.map((_, left) => ({ ...plan, tricks: plan.tricks.filter((__, index) => index !== left) }))
