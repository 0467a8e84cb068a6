import { systemClock as clock } from '../../base/clock.ts'
import { factsOf } from '../../hooks/install/client.ts'
import type { ClientName } from '../../hooks/install/client.ts'
import { statusOf } from '../../hooks/install/status.ts'
import type { Question } from '../../hooks/install/status.ts'
import { runCaptured } from '../../processes/captured-command.ts'
import type { Finding } from '../../workers/examine/examine.ts'

/** Some of them take seconds to say it, on a busy machine more. */
const PATIENCE_MS = 20_000
const MOST_BYTES = 4_096

/** What is too old for the hooks that it is to run. Only of clients that have them: others are none of our business. */
export async function examineClients(question: Question): Promise<Finding[]> {
  const statuses = await statusOf(question)
  const installed = new Set(statuses.filter(({ state }) => state !== 'not-installed').map(({ client }) => client))
  return Promise.all([...installed].map((client) => examineClient(client, question.surroundings.variables)))
}

async function examineClient(client: ClientName, variables: Question['surroundings']['variables']): Promise<Finding> {
  const { title, madeFor } = factsOf(client)
  const { version, cut } = await versionOf(client, variables)
  if (version === undefined) {
    const why = cut === 'absent' ? 'is not on the PATH here' : 'does not say which version it is'
    return { check: title, status: 'ok', detail: `\`${client}\` ${why}, so its version was not looked at` }
  }
  if (!isOlder(version, madeFor)) return { check: title, status: 'ok', detail: version }
  return {
    check: title,
    status: 'warn',
    detail: `${version} is older than ${madeFor}, which the hooks were made for: events may be missing, and messages with them`,
    remedy: `update ${client}; until then \`holdfast inbox drain self\` in the session takes what waits`,
  }
}

/** What a program says of itself. */
export async function versionOf(program: string, variables: Question['surroundings']['variables']) {
  const env = Object.fromEntries(
    Object.entries(variables).filter((each): each is [string, string] => each[1] !== undefined),
  )
  const asking = { clock, cwd: '/', env, timeoutMs: PATIENCE_MS, maxBytes: MOST_BYTES }
  const { stdout, cut } = await runCaptured([program, '--version'], asking)
  return { version: /\d+\.\d+\.\d+/.exec(stdout.toString())?.[0], cut }
}

/** Number by number: 2.1.99 is older than 2.1.325. */
export function isOlder(version: string, least: string): boolean {
  const [have, want] = [version, least].map((text) => text.split('.').map(Number))
  const differs = want?.findIndex((number, index) => number !== have?.[index]) ?? -1
  return differs !== -1 && (have?.[differs] ?? 0) < (want?.[differs] ?? 0)
}
