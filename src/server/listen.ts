import { once } from 'node:events'
import { createServer } from 'node:http'
import type { RequestListener, Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Server as SecureServer } from 'node:https'
import { chmod, lstat, unlink } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'

import { HoldfastError } from '../base/errors.ts'
import { errorCode } from '../base/files.ts'
import { LIMITS } from '../base/limits.ts'
import { USUAL_PORT } from './usual-port.ts'

export interface Tls {
  readonly cert: string
  readonly key: string
}

export interface ListenOptions {
  readonly port: number | undefined
  readonly bind?: string
  readonly names?: readonly string[]
  readonly tls?: Tls
  readonly socket?: string
}

export type AnyServer = Server | SecureServer

export interface Place {
  readonly servers: readonly AnyServer[]
  readonly url: string
  readonly port: number
  readonly moved: boolean
}

const LIMITED = {
  maxHeaderSize: LIMITS.headerBytes,
  headersTimeout: LIMITS.headersMs,
  requestTimeout: LIMITS.requestMs,
  connectionsCheckingInterval: LIMITS.requestCheckMs,
} as const

/** This machine under both of its addresses, with one port; a wider one and a unix socket where they were asked for. */
export async function listenEverywhere(
  options: ListenOptions,
  listener: RequestListener,
  attach: (server: AnyServer) => void,
): Promise<Place> {
  const { tls } = options
  const make = (): AnyServer => {
    const server =
      tls === undefined ? createServer(LIMITED, listener) : createSecureServer({ ...LIMITED, ...tls }, listener)
    server.setTimeout(LIMITS.silentConnectionMs)
    attach(server)
    return server
  }
  const { servers, moved, port } = await onPort(options, make)
  if (options.socket !== undefined) servers.push(await onSocket(options.socket, listener, attach, servers))
  const name = options.names?.[0] ?? '127.0.0.1'
  return { servers, moved, port, url: `${tls === undefined ? 'http' : 'https'}://${name}:${port}` }
}

interface Listening {
  readonly servers: AnyServer[]
  readonly port: number
  readonly moved: boolean
}

/** A port that was asked for by its number is that one or none; the usual one may be somebody else's. */
async function onPort({ port, bind }: ListenOptions, make: () => AnyServer): Promise<Listening> {
  try {
    return { ...(await onAll(port ?? USUAL_PORT, bind, make)), moved: false }
  } catch (error) {
    if (port === undefined && errorCode(error) === 'EADDRINUSE') return { ...(await onAll(0, bind, make)), moved: true }
    const where = bind === undefined ? '' : ` of ${bind}`
    throw new HoldfastError('daemon/port', `cannot listen on port ${port ?? USUAL_PORT}${where}: ${reasonOf(error)}`, {
      remedy: 'give another one with --port, or --port 0 for any that is free',
      cause: error,
    })
  }
}

const TRIES = 5

/**
 * The port must be ours at both addresses: a browser that is told `localhost` picks one of them, and a stranger at the other
 * would be shown what is meant for us.
 */
async function onAll(
  wanted: number,
  bind: string | undefined,
  make: () => AnyServer,
  tries = TRIES,
): Promise<Omit<Listening, 'moved'>> {
  const everywhere = bind === '0.0.0.0' || bind === '::'
  const hosts = everywhere ? [bind] : ['127.0.0.1', '::1', ...(bind === undefined || isLoopback(bind) ? [] : [bind])]
  const servers: AnyServer[] = []
  try {
    let port = wanted
    for (const host of hosts) {
      const server = make()
      if (!(await listenOn(server, port, host))) continue
      servers.push(server)
      port = (server.address() as AddressInfo).port
    }
    return { servers, port }
  } catch (error) {
    for (const server of servers) server.close()
    if (wanted === 0 && errorCode(error) === 'EADDRINUSE' && tries > 1) return onAll(wanted, bind, make, tries - 1)
    throw error
  }
}

const isLoopback = (address: string): boolean => ['127.0.0.1', '::1', 'localhost'].includes(address)

/** A machine without IPv6 has no ::1: that is no reason not to start. */
async function listenOn(server: AnyServer, port: number, host: string): Promise<boolean> {
  try {
    server.listen({ port, host, ...(host === '::' ? {} : { ipv6Only: host.includes(':') }) })
    await once(server, 'listening')
    return true
  } catch (error) {
    if (host === '::1' && ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL'].includes(errorCode(error) ?? '')) return false
    throw error
  }
}

/** For this user only. One that a killed daemon left is removed: this home folder has one daemon at a time. */
async function onSocket(
  path: string,
  listener: RequestListener,
  attach: (server: AnyServer) => void,
  others: readonly AnyServer[],
): Promise<AnyServer> {
  const server = createServer(LIMITED, listener)
  attach(server)
  try {
    if ((await lstat(path).catch(() => undefined))?.isSocket() === true) await unlink(path)
    const before = process.umask(0o177)
    try {
      server.listen(path)
    } finally {
      process.umask(before)
    }
    await once(server, 'listening')
    await chmod(path, 0o600)
    return server
  } catch (error) {
    for (const other of others) other.close()
    throw new HoldfastError('daemon/socket', `cannot listen at ${path}: ${reasonOf(error)}`, {
      remedy: 'name a path in a folder of your own',
      cause: error,
    })
  }
}

function reasonOf(error: unknown): string {
  if (errorCode(error) === 'EADDRINUSE') return 'another program has it'
  return errorCode(error) === 'EACCES' ? 'this user may not have it' : String(error)
}
