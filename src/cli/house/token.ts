import { Option } from 'commander'
import type { Command } from 'commander'

import { SCOPES } from '../../api/endpoint.ts'
import type { Scope } from '../../api/endpoint.ts'
import type { Answer } from '../../api/routes.ts'
import { HoldfastError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import { readWindowUrl } from '../../workers/home.ts'
import { collect } from '../around/collect.ts'
import { withApi } from '../around/context.ts'
import type { Operator } from '../around/context.ts'
import { durationOption } from '../words/duration-option.ts'
import { readEnvironment } from '../around/environment.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { ago, makeOutput, table } from '../words/output.ts'
import { refuseInsideRun } from '../around/person.ts'
import { namedThread } from '../around/self.ts'

export function addToken(token: Command, setExit: SetExit): void {
  token
    .command('create')
    .description('make a token; it is printed this once, and only a digest of it is kept')
    .addOption(new Option('--scope <scope...>', 'what it may do').choices(SCOPES).makeOptionMandatory())
    .option('--name <name>', 'what to call it in lists and in the record of who did what')
    .option('--thread <thread>', 'with the scope record: good for this thread alone, and for its inbox')
    .option('--expires <duration>', 'good for this long, as 30d', durationOption)
    .action(async (flags: CreateFlags, command: Command) => {
      setExit(await withApi(command, (operator) => create(operator, flags)))
    })
  token
    .command('list')
    .description('tokens and browsers that are signed in, newest first')
    .option('--all', 'those that were revoked or have run out, too')
    .action(async (flags: { all?: boolean }, command: Command) => {
      setExit(await withApi(command, (operator) => list(operator, flags.all === true)))
    })
  token
    .command('revoke')
    .description('end a token at once, streams that it has open too')
    .argument('<token>', 'its id')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withApi(command, (operator) => revoke(operator, id))),
    )
  token
    .command('code')
    .description('a single-use address that signs a browser in')
    .action(async (_: unknown, command: Command) => setExit(await code(command)))
}

interface CreateFlags {
  readonly scope: readonly Scope[]
  readonly name?: string
  readonly thread?: string
  readonly expires?: number
}

async function create(operator: Operator, { scope, name, thread, expires }: CreateFlags): Promise<number> {
  refuseInsideRun(operator)
  const { api, output } = operator
  const made = await api.call('tokens.create', {
    scopes: [...scope],
    ...(name === undefined ? {} : { name }),
    ...(thread === undefined ? {} : { threadId: await namedThread(operator, thread) }),
    ...(expires === undefined ? {} : { expiresInMs: expires }),
  })
  output.result(made, () => made.token)
  output.note(`${made.id} (${made.scopes.join(', ')}); \`holdfast token revoke ${made.id}\` ends it`)
  return EXIT.done
}

async function list({ api, output, clock }: Operator, all: boolean): Promise<number> {
  const tokens = await collect(api, 'tokens.list', { all: all ? 'true' : 'false' }, LIMITS.longestPage)
  const now = clock.now()
  output.result(tokens, () =>
    table(
      ['TOKEN', 'KIND', 'NAME', 'SCOPES', 'MADE', 'STATE'],
      tokens.map((token) => [
        token.id,
        token.kind,
        token.name,
        [...token.scopes, ...(token.threadId === undefined ? [] : [`of ${token.threadId}`])].join(' '),
        ago(Date.parse(token.createdAt), now),
        stateOf(token, now),
      ]),
      "no tokens were made; the one in the home folder is its owner's",
    ),
  )
  return EXIT.done
}

function stateOf({ revokedAt, expiresAt }: Answer<'tokens.revoke'>, now: number): string {
  if (revokedAt !== undefined) return 'revoked'
  if (expiresAt === undefined) return 'good'
  return Date.parse(expiresAt) > now ? `good until ${expiresAt}` : 'expired'
}

async function revoke(operator: Operator, given: string): Promise<number> {
  refuseInsideRun(operator)
  const token = await operator.api.call('tokens.revoke', { token: given })
  operator.output.result(token, () => `${token.id} revoked`)
  return EXIT.done
}

/** Codes live in the daemon: it is asked, also when it is the one of this home folder. */
async function code(command: Command): Promise<number> {
  const flags = command.optsWithGlobals<{ home?: string; store?: string; json?: boolean }>()
  const environment = readEnvironment(flags)
  refuseInsideRun({ environment })
  const output = makeOutput(flags.json === true)
  const url = environment.url ?? readWindowUrl(environment.home)
  if (url === undefined) {
    throw new HoldfastError('daemon/none', 'no daemon is running here', { remedy: '`holdfast up` starts one' })
  }
  const { remoteApi } = await import('../around/remote.ts')
  const made = await remoteApi(url, environment, output.note).call('session.code', {})
  output.result(made, () => made.url)
  output.note(`good for one browser, until ${made.expiresAt}`)
  return EXIT.done
}
