import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'

import { API } from '../../api/endpoint.ts'
import { systemClock as clock } from '../../base/clock.ts'
import { errorCode } from '../../base/files.ts'
import { processIdentity } from '../../processes/identity.ts'
import { homePaths } from '../../workers/home.ts'
import type { Finding } from '../../workers/examine/examine.ts'
import { USUAL_PORT } from '../../server/usual-port.ts'

/** A daemon that is well answers in milliseconds, also on a busy machine. */
const PATIENCE_MS = 5_000

interface Noted {
  readonly url: string
  readonly pid: number
  readonly startTime?: number
  readonly instance?: string
}

/** Whether the window of this folder's daemon can be reached; without a daemon, whether it could have its usual place. */
export async function examineWindow(home: string): Promise<Finding> {
  const noted = readNoted(home)
  if (noted === undefined || !isAlive(noted)) return examinePort()
  const { url, pid } = noted
  if (url.startsWith('https:')) {
    return {
      check: 'window',
      status: 'ok',
      detail: `${url}; not asked, because whom its certificate names is yours to judge`,
    }
  }
  const answer = await askHealth(url)
  if (answer === noted.instance) return { check: 'window', status: 'ok', detail: `${url} answers` }
  if (answer !== undefined) return somebodyElse(noted)
  return {
    check: 'window',
    status: 'fail',
    detail: `the daemon, process ${pid}, does not answer at ${url}`,
    remedy: `end it (\`kill ${pid}\`, after a minute \`kill -9 ${pid}\`: nothing that was acknowledged is lost) and start \`holdfast up\` again`,
  }
}

const somebodyElse = ({ url, pid }: Noted): Finding => ({
  check: 'window',
  status: 'fail',
  detail: `${url} is answered by another program than the daemon, process ${pid}`,
  remedy: 'stop the daemon and start it with --port and a number that is free',
})

function readNoted(home: string): Noted | undefined {
  try {
    return JSON.parse(readFileSync(homePaths(home).daemon, 'utf8')) as Noted
  } catch {
    return undefined
  }
}

/** A number may belong to another process by now; when that began tells them apart. */
function isAlive({ pid, startTime }: Noted): boolean {
  const found = processIdentity(pid)
  return found !== undefined && (startTime === undefined || found.startTime === startTime)
}

/** Who answers there; undefined: nobody, or no Holdfast. */
async function askHealth(url: string): Promise<string | undefined> {
  const late = new AbortController()
  const disarm = clock.after(PATIENCE_MS, () => late.abort(), { ref: true })
  try {
    const answer = await fetch(`${url}${API}/health`, { signal: late.signal })
    return ((await answer.json()) as { readonly instance?: string }).instance ?? ''
  } catch {
    return undefined
  } finally {
    disarm()
  }
}

async function examinePort(): Promise<Finding> {
  const server = createServer()
  try {
    server.listen(USUAL_PORT, '127.0.0.1')
    await once(server, 'listening')
    return { check: 'window', status: 'ok', detail: `port ${USUAL_PORT} is free for it` }
  } catch (error) {
    if (errorCode(error) !== 'EADDRINUSE') {
      return {
        check: 'window',
        status: 'warn',
        detail: `port ${USUAL_PORT} cannot be listened on: ${errorCode(error)}`,
      }
    }
    return {
      check: 'window',
      status: 'warn',
      detail: `port ${USUAL_PORT} is in use by another program, perhaps a Holdfast with another home`,
      remedy: `\`holdfast up\` takes a free one and prints it; \`--port NUMBER\` names one that stays; \`ss -ltnp 'sport = :${USUAL_PORT}'\` says who has it`,
    }
  } finally {
    server.close()
  }
}
