/** A name in the configuration that stands for several tools. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  files: ['files_read', 'files_write', 'files_edit', 'files_list', 'files_search'],
  http: ['http_get', 'http_send'],
}

/** Tools that every installation has; those of the last line belong to the runtime, not to this folder. */
const FOLLOWUPS = ['schedule_followup', 'list_followups', 'cancel_followup']
const SINGLE = ['shell', 'parallel_shell', 'delegate', ...FOLLOWUPS, 'manage_jobs']

/** What a configuration may name: a tool, or a group of them. */
export const NAMES_IN_CONFIG: readonly string[] = [...SINGLE, ...Object.keys(GROUPS), ...Object.values(GROUPS).flat()]

/** What schedules with a webhook do; a rule may be about it, an agent cannot have it. */
export const WEBHOOK_TOOL = 'webhook'

const isBuiltIn = (name: string): boolean => NAMES_IN_CONFIG.includes(name) || name === WEBHOOK_TOOL

export const expandToolName = (name: string): readonly string[] =>
  Object.hasOwn(GROUPS, name) ? (GROUPS[name] ?? []) : [name]

/** The tools that an agent has by this name: whoever can ask for a follow-up can see his own and take them back. */
export const toolsNamed = (name: string): readonly string[] =>
  FOLLOWUPS.includes(name) ? FOLLOWUPS : expandToolName(name)

// What every provider of models takes as the name of a tool.
const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/

/** Why a tool of somebody's own cannot have this name. */
export function toolNameProblem(name: string): { readonly what: string; readonly remedy: string } | undefined {
  if (!NAME.test(name)) {
    const remedy = 'use letters, digits, _ and -, a letter first, 64 at most'
    return { what: 'cannot be the name of a tool', remedy }
  }
  return isBuiltIn(name) ? { what: 'is the name of a built-in tool', remedy: 'choose another one' } : undefined
}
