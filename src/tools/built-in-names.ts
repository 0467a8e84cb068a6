/** A name in the configuration that stands for several tools. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  files: ['files_read', 'files_write', 'files_edit', 'files_list', 'files_search'],
  http: ['http_get', 'http_send'],
}

/** Tools that every installation has; those of the last line belong to the runtime, not to this folder. */
const SINGLE = ['shell', 'parallel_shell', 'delegate', 'schedule_followup', 'manage_jobs']

/** What a configuration may name: a tool, or a group of them. */
export const NAMES_IN_CONFIG: readonly string[] = [...SINGLE, ...Object.keys(GROUPS), ...Object.values(GROUPS).flat()]

export const isBuiltIn = (name: string): boolean => NAMES_IN_CONFIG.includes(name)

export const expandToolName = (name: string): readonly string[] =>
  Object.hasOwn(GROUPS, name) ? (GROUPS[name] ?? []) : [name]
