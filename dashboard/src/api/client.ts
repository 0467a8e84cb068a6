import { answered, createClient, notOurs } from '../../../src/api/client.ts'
import type { EndpointName } from '../../../src/api/endpoints.ts'
import type { Answer, Ask } from '../../../src/api/routes.ts'

export type { Answer, Ask, EndpointName }

/** The daemon that served this page; the browser's cookie says who asks. */
const HERE = { url: '' } as const
const here = createClient(HERE)

export const call = <N extends EndpointName>(name: N, ask: Ask<N>): Promise<Answer<N>> => here.call(name, ask)

/** A code that `holdfast up` printed, or a token, becomes the cookie of this browser. */
export const openSession = (given: { readonly code: string } | { readonly token: string }) =>
  'code' in given ? here.call('session.open', given) : createClient({ ...HERE, ...given }).call('session.open', {})

export async function openStream(after: number, signal: AbortSignal): Promise<Response> {
  const headers = { 'Last-Event-ID': String(after) }
  const response = await answered(HERE, '/api/v1/events', { method: 'GET', headers, signal })
  if (response.headers.get('Content-Type')?.startsWith('text/event-stream') === true) return response
  throw notOurs(HERE, 'its answer is no stream of events')
}

/** What went wrong, in the daemon's own words. */
export interface Problem {
  readonly message: string
  readonly code: string
  readonly remedy: string | undefined
}

export function asProblem(error: unknown): Problem {
  const { message, code, remedy } = error as Partial<Problem>
  return { message: message ?? String(error), code: code ?? 'page/unexpected', remedy }
}

const SIGNED_OUT = ['auth/no-token', 'auth/wrong-token', 'auth/no-page-header']

/** Nobody is signed in here any more. */
export const isSignedOut = ({ code }: Problem): boolean => SIGNED_OUT.includes(code)
