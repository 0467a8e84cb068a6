import { readFileSync } from 'node:fs'

import { createClient } from '../../api/client.ts'
import type { Api } from '../../api/client.ts'
import { HoldfastError } from '../../base/errors.ts'
import { homePaths, readWindowUrl } from '../../workers/home.ts'
import type { Environment } from './environment.ts'

/** A daemon elsewhere. The token of this machine's own is shown to nobody else. */
export function remoteApi(url: string, environment: Environment, note: (text: string) => void): Api {
  const { protocol, hostname } = addressOf(url)
  if (protocol === 'http:' && !['127.0.0.1', 'localhost', '[::1]'].includes(hostname)) {
    note(`${url} is not encrypted: everybody on the way can read the token`)
  }
  return createClient({ url, token: environment.token ?? ownToken(url, environment) })
}

function addressOf(url: string): URL {
  // Not `canParse`: of a name that is too long that says yes, and then it is none.
  const address = URL.parse(url)
  if (address !== null && /^https?:$/.test(address.protocol) && address.username === '') return address
  throw new HoldfastError('usage/url', `HOLDFAST_URL is "${url}", which is no address of a daemon`, {
    remedy: 'as in http://127.0.0.1:4780; the token goes into HOLDFAST_TOKEN',
  })
}

function ownToken(url: string, { home }: Environment): string {
  try {
    if (readWindowUrl(home) === url) return readFileSync(homePaths(home).token, 'utf8').trim()
  } catch {
    // As if there were none.
  }
  throw new HoldfastError('auth/no-token', `there is no token for ${url}`, {
    remedy: 'set HOLDFAST_TOKEN; the one in the home folder is for the daemon of that folder alone',
  })
}
