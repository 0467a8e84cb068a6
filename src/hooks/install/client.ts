import { join } from 'node:path'

/** Where a client keeps its settings, as its own variables and this user's home say. */
export interface Surroundings {
  readonly userHome: string
  readonly variables: Readonly<Record<string, string | undefined>>
}

/** For every session of this user, or for those in one folder. */
export type Scope = { readonly kind: 'user' } | { readonly kind: 'project'; readonly folder: string }

export interface ClientFacts {
  readonly title: string
  /** The version that the tests drive (scripts/real-clients.sh); older ones may lack events. */
  readonly madeFor: string
  /** The events that we listen to, each with the longest time that our handler may take, in seconds. */
  readonly events: Readonly<Record<string, number>>
  /** `exec`: program and arguments stand apart. `shell`: one line that a shell reads. */
  readonly form: 'exec' | 'shell'
  /** What the client counts timeouts in, as a part of a second. */
  readonly unitsPerSecond: 1 | 1_000
  /** Whether its settings may have comments. One that reads strict JSON ignores a file that has them. */
  readonly comments: boolean
  readonly userFile: (surroundings: Surroundings) => string
  readonly projectFile: (folder: string) => string
  /** Other files of a project that may hold our entries, as when somebody moved them. */
  readonly otherProjectFiles: (folder: string) => readonly string[]
  /** What a person has to know after the files were changed. */
  readonly afterwards: readonly string[]
}

const RESTART = 'sessions that are open keep what they had; the next one has the hooks'
const PRIVATE = 'a project file with these entries names programs of this machine: keep it out of version control'

/** A variable that is set to nothing is not set. */
const folderOf = (value: string | undefined, otherwise: string) =>
  value === undefined || value === '' ? otherwise : value

/**
 * The drain at the end of a turn is what a person waits for, and it may have to wait for a database lock; SessionStart may
 * have to start the daemon. Clients give the end of a session about a second, whatever is written here.
 */
const CLAUDE_EVENTS = {
  SessionStart: 30,
  UserPromptSubmit: 30,
  Notification: 15,
  PermissionRequest: 15,
  SubagentStop: 30,
  Stop: 60,
  StopFailure: 30,
  SessionEnd: 10,
} as const

const CODEX_EVENTS = {
  SessionStart: 30,
  UserPromptSubmit: 30,
  PermissionRequest: 15,
  SubagentStop: 30,
  Stop: 60,
  Interrupt: 15,
  SessionEnd: 10,
} as const

const GEMINI_EVENTS = { SessionStart: 30, BeforeAgent: 30, AfterAgent: 60, Notification: 15, SessionEnd: 10 } as const

export const CLIENTS = {
  claude: {
    title: 'Claude Code',
    madeFor: '2.1.325',
    events: CLAUDE_EVENTS,
    form: 'exec',
    unitsPerSecond: 1,
    comments: false,
    userFile: ({ userHome, variables }) =>
      join(folderOf(variables['CLAUDE_CONFIG_DIR'], join(userHome, '.claude')), 'settings.json'),
    // Not the one that is shared with others: the paths are this machine's.
    projectFile: (folder) => join(folder, '.claude', 'settings.local.json'),
    otherProjectFiles: (folder) => [join(folder, '.claude', 'settings.json')],
    afterwards: [RESTART],
  },
  codex: {
    title: 'Codex',
    madeFor: '0.166.0',
    events: CODEX_EVENTS,
    form: 'shell',
    unitsPerSecond: 1,
    comments: false,
    userFile: ({ userHome, variables }) =>
      join(folderOf(variables['CODEX_HOME'], join(userHome, '.codex')), 'hooks.json'),
    projectFile: (folder) => join(folder, '.codex', 'hooks.json'),
    otherProjectFiles: () => [],
    afterwards: [
      'Codex runs a hook only after you have said yes to exactly this one: start codex, open /hooks and trust them; after every change again',
      RESTART,
    ],
  },
  gemini: {
    title: 'Gemini CLI',
    madeFor: '0.61.0',
    events: GEMINI_EVENTS,
    form: 'shell',
    unitsPerSecond: 1_000,
    comments: true,
    userFile: ({ userHome, variables }) =>
      join(folderOf(variables['GEMINI_CLI_HOME'], userHome), '.gemini', 'settings.json'),
    projectFile: (folder) => join(folder, '.gemini', 'settings.json'),
    otherProjectFiles: () => [],
    afterwards: [RESTART],
  },
} as const satisfies Record<string, ClientFacts>

export type ClientName = keyof typeof CLIENTS
export const CLIENT_NAMES = Object.keys(CLIENTS) as ClientName[]

export const factsOf = (client: ClientName): ClientFacts => CLIENTS[client]

export function settingsFile(client: ClientName, scope: Scope, surroundings: Surroundings): string {
  const facts = factsOf(client)
  return scope.kind === 'user' ? facts.userFile(surroundings) : facts.projectFile(scope.folder)
}

export const whatToKnow = (client: ClientName, scope: Scope): readonly string[] => [
  ...factsOf(client).afterwards,
  ...(scope.kind === 'project' ? [PRIVATE] : []),
]
