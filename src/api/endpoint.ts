/**
 * What a token may do. `read` looks; `operate` sends, stops, cancels; `approve` answers for people; `admin` has all of it
 * and makes tokens; `record` is for hooks and agents: it tells what happened, and with a thread of its own also reads and
 * writes that thread's inbox.
 */
export const SCOPES = ['read', 'operate', 'approve', 'admin', 'record'] as const
export type Scope = (typeof SCOPES)[number]

/** A wider scope has the narrower ones in it. Deciding is not operating: whoever restarts runs need not sign for writes. */
export const IMPLIED: Readonly<Record<Scope, readonly Scope[]>> = {
  read: ['read'],
  operate: ['operate', 'read'],
  approve: ['approve', 'read'],
  admin: ['admin', 'operate', 'approve', 'read', 'record'],
  record: ['record'],
}

export const covers = (scopes: readonly Scope[], wanted: Scope): boolean =>
  scopes.some((scope) => IMPLIED[scope].includes(wanted))

export interface Endpoint {
  readonly method: 'GET' | 'POST'
  /** Below `/api/v1`; `:name` is a part that the caller fills in. */
  readonly path: string
  /** `nobody`: it needs no token. `anybody`: any token that is good. */
  readonly scope: Scope | 'nobody' | 'anybody'
  /** A `record` token that has a thread may do this too, to that thread alone. */
  readonly own?: true
  /** What is answered, where that is not JSON. */
  readonly answers?: 'text/event-stream' | 'text/plain'
  /** A POST that changes nothing: it has a body because its question is too long for an address. */
  readonly harmless?: true
  /** The status of a success, if it is not 200. */
  readonly status?: 201
  readonly summary: string
}

export const API = '/api/v1'
