import type { IncomingMessage, ServerResponse } from 'node:http'

import { HoldfastError, viewError } from '../base/errors.ts'
import { jsonText } from '../base/visible.ts'
import { statusOf } from './errors.ts'
import { SECURITY_HEADERS } from './headers.ts'

/** Under which names we are reached, and how. */
export interface Names {
  /** Beside this machine's own names, exactly as they stand in a Host header, without the port. */
  readonly more: readonly string[]
  readonly tls: boolean
}

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]']

/** Exactly these, in lower case. A port that every browser leaves out may be left out. */
function ownHosts({ more, tls }: Names, port: number | undefined): string[] {
  // A unix socket has no port, and nobody but a program of this user comes to it.
  if (port === undefined) return ['localhost']
  const names = [...LOOPBACK, ...more.map((name) => name.toLowerCase())]
  return [...names.map((name) => `${name}:${port}`), ...(port === (tls ? 443 : 80) ? names : [])]
}

/**
 * Looked at before anything else of a request is: with a name that is not ours, a foreign page has pointed its own name
 * here; with an origin that is not ours, it is a foreign page itself. Undefined: it may pass.
 */
export function refusalOf(request: IncomingMessage, names: Names): HoldfastError | undefined {
  const hosts = ownHosts(names, request.socket.localPort)
  const given = valuesOf(request, 'host')
  // A second one, or a whole address instead of a path, would let two readers see two names.
  if (given.length !== 1 || !hosts.includes(given[0]!.toLowerCase()) || request.url?.startsWith('/') !== true) {
    return foreignHost(hosts, names)
  }
  const scheme = names.tls ? 'https' : 'http'
  const origins = valuesOf(request, 'origin')
  if (origins.some((origin) => !hosts.some((host) => origin.toLowerCase() === `${scheme}://${host}`)))
    return foreignPage()
  return isFromElsewhere(request) ? foreignPage() : undefined
}

const valuesOf = ({ rawHeaders }: IncomingMessage, name: string): string[] =>
  rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name)

/** What browsers say of where a request comes from. A link to our page may stand anywhere: it shows, and does nothing. */
function isFromElsewhere(request: IncomingMessage): boolean {
  const [site] = valuesOf(request, 'sec-fetch-site')
  if (site === undefined || site === 'same-origin' || site === 'none') return false
  const isLink = request.method === 'GET' && valuesOf(request, 'sec-fetch-mode')[0] === 'navigate'
  return !isLink || isApi(request.url ?? '')
}

const isApi = (path: string) => path.startsWith('/api') || path.startsWith('/metrics')

const foreignHost = (hosts: readonly string[], { tls }: Names) =>
  new HoldfastError('auth/foreign-host', 'this name is not one of mine', {
    remedy: `use ${tls ? 'https' : 'http'}://${hosts[0]}/ or ${tls ? 'https' : 'http'}://${hosts[1] ?? hosts[0]}/`,
  })

const foreignPage = () =>
  new HoldfastError('auth/foreign-origin', 'a page of another origin may not do this', {
    remedy: 'use the page that this daemon serves, or a program without an Origin header',
  })

/** Answered without the help of anything that comes after the gate. */
export function turnAway(request: IncomingMessage, response: ServerResponse, error: HoldfastError): void {
  request.resume()
  response.writeHead(statusOf(error), {
    ...SECURITY_HEADERS,
    'Content-Type': 'application/json',
    'Cache-Control': 'no-store',
    Connection: 'close',
  })
  response.end(request.method === 'HEAD' ? undefined : jsonText({ error: viewError(error) }))
}
