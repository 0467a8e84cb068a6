import { readList, readRecord } from './read.ts'
import type { Reader } from './read.ts'

/** What the http tools may reach besides the public internet. */
export interface HttpConfig {
  /** Hosts whose private addresses are allowed, as `localhost:8080` or `intranet`. */
  readonly allowPrivate: readonly string[]
}

export const readHttpConfig: Reader<HttpConfig> = (value, path, complain) => {
  const http = readRecord(value, ['allowPrivate'], path, complain)
  return { allowPrivate: readList(http['allowPrivate'] ?? [], [...path, 'allowPrivate'], complain, readHost) }
}

// A name or an address, perhaps with a port: no scheme and no path, which would never match.
const HOST = /^(\[[0-9a-f:.]+\]|[A-Za-z0-9.-]+)(:\d{1,5})?$/

const readHost: Reader<string> = (value, path, complain) =>
  typeof value === 'string' && HOST.test(value)
    ? value.toLowerCase()
    : complain(path, 'is not a host', 'write it as "localhost:8080" or "intranet.example"')
