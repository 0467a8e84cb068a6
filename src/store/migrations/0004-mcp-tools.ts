import type { Migration } from './migration.ts'

/** What MCP servers say about their tools: what a person has agreed to, and what waits for that. */
export const mcpTools: Migration = {
  number: 4,
  name: 'mcp-tools',
  statements: (d) => [
    // Whoever inserts this row is the first to use the server, and what its list says is accepted.
    `create table mcp_servers (
      server ${d.key} primary key,
      pinned_at ${d.integer} not null
    )${d.tableEnd}`,
    `create table mcp_tools (
      server ${d.key} not null,
      tool ${d.key} not null,
      digest text,
      definition text,
      accepted_at ${d.integer},
      accepted_by text,
      offered_digest text,
      offered text,
      offered_at ${d.integer},
      primary key (server, tool),
      check (digest is not null or offered_digest is not null)
    )${d.tableEnd}`,
  ],
}
