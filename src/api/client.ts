import { HoldfastError } from '../base/errors.ts'
import { API } from './endpoint.ts'
import type { Endpoint } from './endpoint.ts'
import { ENDPOINTS, partsOf } from './endpoints.ts'
import type { EndpointName } from './endpoints.ts'
import type { Answer, Ask } from './routes.ts'

/** The operator's side of Holdfast: in the daemon's process, or over HTTP, with the same answers. */
export interface Api {
  call<N extends EndpointName>(name: N, ask: Ask<N>): Promise<Answer<N>>
}

export interface ClientOptions {
  /** Of the daemon; empty for a page that the daemon itself has served. */
  readonly url: string
  /** A browser that is signed in has a cookie instead. */
  readonly token?: string
  readonly fetch?: typeof globalThis.fetch
}

/** What a browser sends beside its cookie: a form, an image or a page of another origin cannot. */
export const PAGE_HEADER = 'X-Holdfast'

function headersFor({ token }: Pick<ClientOptions, 'token'>): Record<string, string> {
  return token === undefined ? { [PAGE_HEADER]: '1' } : { Authorization: `Bearer ${token}` }
}

/** A typed client. It knows the doors, not the schemas: nothing but `fetch` is needed where it runs. */
export function createClient(options: ClientOptions): Api {
  return {
    async call<N extends EndpointName>(name: N, ask: Ask<N>): Promise<Answer<N>> {
      const { url, init } = requestFor(name, ask)
      const body = await bodyOf(options, await answered(options, url, init))
      if (isListed(name) && !Array.isArray(body['items'])) throw notOurs(options, 'its answer is no list')
      return body as Answer<N>
    },
  }
}

/** The address and the rest of a request, without who asks. */
function requestFor<N extends EndpointName>(
  name: N,
  ask: Ask<N>,
): { readonly url: string; readonly init: { method: string; body?: string; headers: Record<string, string> } } {
  const { method, path }: Endpoint = ENDPOINTS[name]
  const said = { ...(ask as Readonly<Record<string, unknown>>) }
  let url = `${API}${path}`
  for (const part of partsOf(path)) {
    url = url.replace(`:${part}`, encodeURIComponent(String(said[part])))
    delete said[part]
  }
  if (method === 'POST') {
    const headers = { 'Content-Type': 'application/json' }
    return { url, init: { method, headers, body: JSON.stringify(said) } }
  }
  const query = new URLSearchParams()
  for (const [field, value] of Object.entries(said)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each !== undefined) query.append(field, String(each))
  }
  return { url: query.size === 0 ? url : `${url}?${query.toString()}`, init: { method, headers: {} } }
}

/** The answer to a request if it is a good one; else what went wrong, under the daemon's own code. */
export async function answered(
  options: ClientOptions,
  url: string,
  { headers, ...init }: Omit<RequestInit, 'headers'> & { readonly headers: Record<string, string> },
): Promise<Response> {
  const { url: base, fetch: ask = globalThis.fetch } = options
  const request = () =>
    ask(`${base}${url}`, {
      ...init,
      headers: { ...headersFor(options), ...headers },
      // One that is followed would show the token to whoever is at its end.
      redirect: 'manual',
      cache: 'no-store',
    })
  let response: Response
  try {
    // What only reads is asked once more: the connection may be a kept one, which the daemon was just closing.
    response = await (init.method === 'GET' ? request().catch(request) : request())
  } catch (cause) {
    throw noAnswer(options, cause)
  }
  if (response.type === 'opaqueredirect') throw notOurs(options, 'it sends one elsewhere')
  if (!response.ok) throw await problemOf(options, response)
  return response
}

/** What a good answer says. A page where one has to sign in, of a proxy in between, is none, although its status is 200. */
async function bodyOf(options: ClientOptions, response: Response): Promise<Readonly<Record<string, unknown>>> {
  const text = await response.text().catch((cause: unknown) => {
    throw noAnswer(options, cause)
  })
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw notOurs(options, 'its answer is no JSON')
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw notOurs(options, 'its answer is no object')
  return body as Readonly<Record<string, unknown>>
}

/** Besides those that are called a list. */
const LISTED: ReadonlySet<EndpointName> = new Set(['series', 'threads.conversation', 'runs.events', 'hooks.status'])

/** Whether what it answers has `items`. */
const isListed = (name: EndpointName) => name.endsWith('.list') || LISTED.has(name)

/** A page has no other daemon than the one that served it. */
const isFar = (url: string) => url !== ''

const noAnswer = ({ url }: ClientOptions, cause: unknown) =>
  new HoldfastError('daemon/no-answer', `nobody answers at ${url === '' ? 'this address' : url}`, {
    remedy: isFar(url) ? 'check that the daemon is up, and HOLDFAST_URL' : 'check that the daemon is up',
    retry: { afterMs: 1_000 },
    cause,
  })

/** Somebody answers, and it is not a daemon. */
export const notOurs = ({ url }: ClientOptions, why: string) =>
  new HoldfastError('daemon/strange-answer', `what answers is not a Holdfast daemon (${why})`, {
    remedy: isFar(url)
      ? 'check HOLDFAST_URL, and what is between here and the daemon'
      : 'load this page again, and sign in where a proxy asks you to',
  })

interface Refusal {
  readonly code: string
  readonly message: string
  readonly remedy?: string
  readonly retry?: { readonly afterMs: number }
}

async function problemOf(options: ClientOptions, response: Response): Promise<HoldfastError> {
  const said = (await response.json().catch(() => null)) as { readonly error?: Partial<Refusal> } | null
  const { code, message = `status ${response.status}`, remedy, retry } = said?.error ?? {}
  if (code === undefined) return notOurs(options, message)
  return new HoldfastError(code, message, {
    ...(remedy === undefined ? {} : { remedy }),
    ...(retry === undefined ? {} : { retry }),
  })
}
