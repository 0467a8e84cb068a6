import { digestOf } from '../../base/canonical-json.ts'
import { record } from '../../events/event.ts'
import { integer, json, nullable, row, text } from '../../store/row.ts'
import type { Decoded } from '../../store/row.ts'
import { now, sql } from '../../store/sql.ts'
import { all, first, run, single } from '../../store/transition.ts'
import type { Transition } from '../../store/transition.ts'
import type { ServerTool } from './connection.ts'

/*
 * A tool's description is text of a stranger that goes straight into the model's prompt. So what it says is remembered
 * when a server is used for the first time, by its hash; what changes or appears later waits until a person said yes:
 *
 *   first list of a server ─▶ accepted ──other definition──▶ accepted, another one offered ──a person──▶ accepted
 *   later list, a new tool ─▶ offered ──a person──▶ accepted
 *
 * A tool of which another definition is offered is not called, and the model is shown only what was accepted.
 */

const pinRow = row({
  server: text(),
  tool: text(),
  digest: nullable(text()),
  definition: nullable(json<ServerTool>()),
  acceptedAt: nullable(integer),
  acceptedBy: nullable(text()),
  offeredDigest: nullable(text()),
  offered: nullable(json<ServerTool>()),
  offeredAt: nullable(integer),
})
export type Pin = Decoded<typeof pinRow>

export interface Seen {
  readonly digest: string
  readonly definition: ServerTool
}

/** Order does not matter in it, and what is absent is not in it: two definitions that mean the same have one hash. */
export const seen = ({ name, description, inputSchema, annotations }: ServerTool): Seen => {
  const definition = {
    name,
    inputSchema,
    ...(description === undefined ? {} : { description }),
    ...(annotations === undefined ? {} : { annotations }),
  }
  return { definition, digest: digestOf(definition) }
}

export const FIRST_SIGHT = 'first use'

export const pinsOf = single((server: string) =>
  all(
    pinRow,
    sql`select server, tool, digest, definition, accepted_at, accepted_by, offered_digest, offered, offered_at
      from mcp_tools where server = ${server} order by tool`,
  ),
)

export const allPins = single((limit: number) =>
  all(
    pinRow,
    sql`select server, tool, digest, definition, accepted_at, accepted_by, offered_digest, offered, offered_at
      from mcp_tools order by server, tool limit ${limit}`,
  ),
)

const nameRow = row({ server: text() })

export const isPinned = single((server: string) =>
  first(nameRow, sql`select server from mcp_servers where server = ${server}`),
)

export type Pinned =
  /** Nobody had used this server before, so this is what it says from now on. */
  | { readonly kind: 'first'; readonly tools: readonly string[] }
  /** These wait for a person. */
  | { readonly kind: 'later'; readonly offered: readonly string[] }

/** Remembers what a server says about its tools. Of two processes that use it for the first time, one is first. */
export function* pinTools(server: string, tools: readonly Seen[]): Transition<Pinned> {
  const won = yield* first(
    nameRow,
    sql`insert into mcp_servers (server, pinned_at) values (${server}, ${now})
      on conflict (server) do nothing returning server`,
  )
  if (won === undefined) return yield* offerTools(server, tools)
  for (const { definition, digest } of tools) {
    yield* run(sql`insert into mcp_tools (server, tool, digest, definition, accepted_at, accepted_by)
      values (${server}, ${definition.name}, ${digest}, ${JSON.stringify(definition)}, ${now}, ${FIRST_SIGHT})
      on conflict (server, tool) do nothing`)
  }
  const names = tools.map(({ definition }) => definition.name)
  yield* record({ type: 'tool.pinned', data: { server, tools: names } })
  return { kind: 'first', tools: names }
}

function* offerTools(server: string, tools: readonly Seen[]): Transition<Pinned> {
  const offered: string[] = []
  for (const { definition, digest } of tools) {
    // A definition that is again what was accepted takes back what was offered in between.
    yield* run(sql`update mcp_tools set offered = null, offered_digest = null, offered_at = null
      where server = ${server} and tool = ${definition.name} and digest = ${digest} and offered_digest is not null`)
    const news = yield* first(
      nameRow,
      sql`insert into mcp_tools (server, tool, offered_digest, offered, offered_at)
        values (${server}, ${definition.name}, ${digest}, ${JSON.stringify(definition)}, ${now})
        on conflict (server, tool) do update
          set offered_digest = excluded.offered_digest, offered = excluded.offered, offered_at = excluded.offered_at
          where coalesce(mcp_tools.digest, '') <> excluded.offered_digest
            and coalesce(mcp_tools.offered_digest, '') <> excluded.offered_digest
        returning server`,
    )
    if (news !== undefined) offered.push(definition.name)
  }
  if (offered.length > 0) yield* record({ type: 'tool.changed', data: { server, tools: offered } })
  return { kind: 'later', offered }
}

export interface Acceptance {
  readonly server: string
  readonly tool: string
  /** Of the definition that the person was shown: no other is accepted. */
  readonly digest: string
  readonly by: string
}

/** A person says yes to one definition. `gone`: it is not the one that is offered now. */
export function* acceptTool({ server, tool, digest, by }: Acceptance): Transition<'accepted' | 'gone'> {
  const changed = yield* first(
    nameRow,
    sql`update mcp_tools
      set digest = offered_digest, definition = offered, accepted_at = ${now}, accepted_by = ${by},
        offered = null, offered_digest = null, offered_at = null
      where server = ${server} and tool = ${tool} and offered_digest = ${digest} returning server`,
  )
  if (changed !== undefined) {
    yield* record({ type: 'tool.accepted', data: { server, tool, digest, by } })
    return 'accepted'
  }
  const pins = yield* pinsOf.single(server)
  return pins.some((pin) => pin.tool === tool && pin.digest === digest && pin.offered === null) ? 'accepted' : 'gone'
}
