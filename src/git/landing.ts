import type { Sha } from './git.ts'

export interface Landing {
  /** As `refs/heads/main`. */
  readonly target: string
  /** Where the branch was when `to` was checked, and what it is to become: it goes on from it. */
  readonly from: Sha
  readonly to: Sha
  readonly runId: string
}

export type Landed =
  /** `followed`: the working tree that has the branch checked out is at it too; otherwise nobody has it checked out. */
  | { readonly kind: 'landed'; readonly followed: boolean }
  /** Nothing of the user's is changed; `code` for programs, `reason` a sentence for people. */
  | { readonly kind: 'ready'; readonly code: ReadyCode; readonly reason: string }
  /** Another git command is at work there right now: try again in a moment. */
  | { readonly kind: 'busy'; readonly reason: string }

export type ReadyCode =
  | 'branch-moved'
  | 'branch-gone'
  | 'dirty'
  | 'in-the-way'
  | 'edited-meanwhile'
  | 'operation'
  | 'several-trees'
  | 'tree-missing'
  | 'submodule'
  | 'filter'
  | 'sparse'
  | 'names'
  | 'file-system'
  | 'unwritable'
  | 'given-up'

export type Refused = Extract<Landed, { kind: 'ready' }>

export const ready = (code: ReadyCode, reason: string): Refused => ({ kind: 'ready', code, reason })
