import { iso } from '../../base/clock.ts'
import type { Command } from 'commander'

import { HoldfastError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import { acceptTool, allPins, pinsOf } from '../../tools/mcp/pins.ts'
import type { Pin } from '../../tools/mcp/pins.ts'
import { withRuntime } from '../around/context.ts'
import type { Context } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { ago, table, visible } from '../words/output.ts'

export function addMcpTools(tools: Command, setExit: SetExit): void {
  tools
    .command('list')
    .description('every tool that an agent of ours has met')
    .action(async (_: unknown, command: Command) => setExit(await withRuntime(command, list, 'beside')))
  tools
    .command('show')
    .description('what a server says about its tools now, and what it said when they were accepted')
    .argument('<server>')
    .argument('[tool]')
    .action(async (server: string, tool: string | undefined, _: unknown, command: Command) =>
      setExit(await withRuntime(command, (context) => show(context, server, tool), 'beside')),
    )
  tools
    .command('accept')
    .description('say yes to tools that changed or appeared, as `show` shows them')
    .argument('<server>')
    .argument('[tool]', 'only this one')
    .option('--digest <prefix>', 'only if this is what it says: from `show`')
    .action(async (server: string, tool: string | undefined, flags: { digest?: string }, command: Command) =>
      setExit(await withRuntime(command, (context) => accept(context, server, tool, flags.digest), 'beside')),
    )
}

const stateOf = ({ digest, offered }: Pin) => (offered === null ? 'accepted' : digest === null ? 'new' : 'changed')

const view = (pin: Pin) => ({
  server: pin.server,
  tool: pin.tool,
  state: stateOf(pin),
  ...(pin.digest === null ? {} : { digest: pin.digest, accepted: pin.definition, acceptedBy: pin.acceptedBy }),
  ...(pin.acceptedAt === null ? {} : { acceptedAt: iso(pin.acceptedAt) }),
  ...(pin.offered === null ? {} : { offeredDigest: pin.offeredDigest, offered: pin.offered }),
})

async function list({ runtime, output }: Context): Promise<number> {
  const pins = await runtime.store.read(allPins, LIMITS.page * 10)
  const now = runtime.clock.now()
  output.result(pins.map(view), () =>
    table(
      ['SERVER', 'TOOL', 'STATE', 'ACCEPTED', 'BY'],
      pins.map((pin) => [
        pin.server,
        pin.tool,
        stateOf(pin),
        pin.acceptedAt === null ? '' : ago(pin.acceptedAt, now),
        pin.acceptedBy ?? '',
      ]),
      'no agent has used an MCP server yet',
    ),
  )
  return EXIT.done
}

async function thePins({ runtime }: Context, server: string, tool: string | undefined): Promise<readonly Pin[]> {
  const pins = (await runtime.store.read(pinsOf, server)).filter((pin) => tool === undefined || pin.tool === tool)
  if (pins.length > 0) return pins
  const what = tool === undefined ? `no tools of an MCP server "${server}" are` : `no tool "${tool}" of "${server}" is`
  throw new HoldfastError('not-found/mcp-tool', `${what} known`, {
    remedy: '`holdfast mcp-tools list` has what there is; a server is asked when an agent first uses it',
  })
}

async function show(context: Context, server: string, tool: string | undefined): Promise<number> {
  const pins = await thePins(context, server, tool)
  context.output.result(pins.map(view), () => pins.map(describe).join('\n\n'))
  return EXIT.done
}

function describe(pin: Pin): string {
  const head = `${pin.server}/${pin.tool}: ${stateOf(pin)}`
  const before = pin.definition === null ? [] : linesOf(pin.definition)
  if (pin.offered === null) return visible([`${head}, ${pin.digest}`, ...before.map((line) => `  ${line}`)].join('\n'))
  return visible([`${head}, ${pin.offeredDigest}`, ...difference(before, linesOf(pin.offered))].join('\n'))
}

const linesOf = (definition: unknown) => JSON.stringify(definition, null, 2).split('\n')

/** The lines that both have at the start and at the end are the same; what is between them changed. */
function difference(before: readonly string[], after: readonly string[]): string[] {
  const same = before.findIndex((line, index) => line !== after[index])
  const start = same === -1 ? before.length : same
  let end = 0
  while (end < Math.min(before.length, after.length) - start && before.at(-1 - end) === after.at(-1 - end)) end += 1
  return [
    ...before.slice(0, start).map((line) => `  ${line}`),
    ...before.slice(start, before.length - end).map((line) => `- ${line}`),
    ...after.slice(start, after.length - end).map((line) => `+ ${line}`),
    ...before.slice(before.length - end).map((line) => `  ${line}`),
  ]
}

async function accept(
  context: Context,
  server: string,
  tool: string | undefined,
  digest: string | undefined,
): Promise<number> {
  const { runtime, output, environment } = context
  const by = `${environment.variables['USER'] ?? 'somebody'} at the command line`
  const waiting = (await thePins(context, server, tool)).filter(({ offered }) => offered !== null)
  const other = waiting.find(({ offeredDigest }) => digest !== undefined && offeredDigest?.startsWith(digest) !== true)
  if (other !== undefined) throw gone(other)
  for (const pin of waiting) {
    const acceptance = { server, tool: pin.tool, digest: pin.offeredDigest ?? '', by }
    if ((await runtime.store.apply(acceptTool, acceptance)) === 'gone') throw gone(pin)
  }
  output.result(waiting.map(view), () =>
    waiting.length === 0 ? 'nothing waits for a yes' : ['accepted:', ...waiting.map(describe)].join('\n\n'),
  )
  return EXIT.done
}

const gone = ({ server, tool }: Pin) =>
  new HoldfastError('conflict/mcp-tool', `"${tool}" of "${server}" says something else by now`, {
    remedy: `look again: holdfast mcp-tools show ${server} ${tool}`,
  })
