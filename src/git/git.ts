import type { Clock } from '../base/clock.ts'

/**
 * Git as we use it: with no configuration but ours, so that nothing that a repository says can make it run a program.
 * Every function of this folder takes this first; a caller that can be stopped gives its signal with it:
 * `snapshot({ ...git, signal }, …)`.
 */
export interface Git {
  readonly clock: Clock
  /** Of the user: PATH to find git, HOME to find the few settings of theirs that say how files look (line ends, ignored names). */
  readonly env: Readonly<Record<string, string | undefined>>
  /** A folder of ours for empty git folders with safe settings, one a repository; made when needed, may be removed at any time. */
  readonly rooms: string
  readonly signal?: AbortSignal
  /** Called, and waited for, between any two steps that change something: for tests that die or look there. */
  readonly point?: (name: GitPoint) => void | Promise<void>
}

/** The full name of an object, 40 or 64 hexadecimal digits. */
export type Sha = string

/** The steps between which a process can die. */
export const GIT_POINTS = [
  // openTree
  'open/begun',
  'open/repository-made',
  'open/files-out',
  'open/complete',
  // snapshot
  'snapshot/looked',
  'snapshot/objects-written',
  'snapshot/committed',
  // land
  'land/locked',
  'land/looked',
  'land/staged',
  'land/begun',
  'land/placing',
  'land/taken',
  'land/placed',
  'land/moving',
  'land/branch-moving',
  'land/branch-moved',
  'land/index-installed',
  'land/unlocked',
  'land/cleaned',
  // putting back what was placed
  'back/placing',
  'back/taken',
  'back/placed',
  // removeFolder
  'remove/aside',
] as const
export type GitPoint = (typeof GIT_POINTS)[number]
