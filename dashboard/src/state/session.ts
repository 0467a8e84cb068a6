import { signal } from '@preact/signals'

import { asProblem, call, isSignedOut, openSession } from '../api/client.ts'
import type { Answer, Problem } from '../api/client.ts'

type Caller = Answer<'session.show'>

/** Who this browser is; undefined: not known yet; null: nobody. */
export const caller = signal<Caller | null | undefined>(undefined)
/** Why the last sign-in did not work, or why one is needed again. */
export const refusal = signal('')
/** Why it is not known yet. */
export const delay = signal<Problem | undefined>(undefined)

export const may = (scope: Caller['scopes'][number]): boolean => {
  const scopes = caller.value?.scopes ?? []
  return scopes.includes('admin') || scopes.includes(scope)
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** The address that `holdfast up` prints has a code behind `#`: it reaches no server, no log and no other page. */
function takeCode(): string | undefined {
  const found = /^#code=([\w-]+)$/.exec(location.hash)?.[1]
  if (location.hash.startsWith('#code=')) history.replaceState(null, '', location.pathname + location.search)
  return found
}

export async function signIn(given: { readonly code: string } | { readonly token: string }): Promise<void> {
  try {
    caller.value = await openSession(given)
    refusal.value = ''
  } catch (error) {
    const { message, remedy } = asProblem(error)
    refusal.value = [message, remedy].filter(Boolean).join('; ')
    caller.value = null
  }
}

/** With a code from the address, or as whoever the cookie says. A daemon that is just starting is waited for. */
export async function begin(): Promise<void> {
  const code = takeCode()
  if (code !== undefined) await signIn({ code })
  // A code works once: whoever opens the same address again is signed in already.
  for (;;) {
    try {
      caller.value = await call('session.show', {})
      refusal.value = ''
      return
    } catch (error) {
      const problem = asProblem(error)
      if (problem.code.startsWith('auth/')) {
        caller.value = null
        return
      }
      delay.value = problem
    }
    await pause(1000)
  }
}

/** The person's own doing: that is why, whatever has noticed it before or notices it later. */
export function signOut(why: string): void {
  refusal.value = why
  caller.value = null
}

/** The daemon knows nobody here any more: whatever was being read just then says so, and the first that knows why. */
export function signedOut(why = ''): void {
  if (caller.value === null && refusal.value !== '') return
  signOut(why)
}

/** What went wrong with a read. Whoever is not signed in any more is asked to sign in. */
export function readProblem(error: unknown): Problem {
  const problem = asProblem(error)
  if (isSignedOut(problem)) signedOut()
  return problem
}
