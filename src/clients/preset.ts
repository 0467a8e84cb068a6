import { digestOf } from '../base/canonical-json.ts'
import type { Client } from '../sessions/session.ts'
import { readClaude } from './claude.ts'
import { readCodex } from './codex.ts'
import { readGemini } from './gemini.ts'
import type { ClientTurn, Printed } from './turn.ts'

/** What a client may do without asking, where the configuration says it. `edits`: change files; `all`: whatever it likes. */
export const PERMISSIONS = ['read', 'edits', 'all'] as const
export type Permissions = (typeof PERMISSIONS)[number]

export interface ClientSettings {
  readonly name: Client
  readonly model?: string
  readonly permissions?: Permissions
  readonly args: readonly string[]
}

/** A session to go on with, or the name of a new one; undefined: a new one, which the client names. */
export type Session = { readonly resume: string } | { readonly begin: string } | undefined

/** How one client is driven. The prompt is always on standard input: there it can be as long, and begin, as it likes. */
export interface Preset {
  readonly client: Client
  /** As prices name the maker of its models. */
  readonly vendor: string
  /** Its own variables: where its account is, and what it signs in with. */
  readonly variables: readonly string[]
  /** Flags that are ours to set. */
  readonly ours: readonly string[]
  /** We give its session a name before it begins. */
  readonly namesSession: boolean
  readonly args: (settings: ClientSettings, session: Session) => readonly string[]
  readonly read: (printed: Printed) => ClientTurn
}

const withModel = (flag: string, { model }: ClientSettings) => (model === undefined ? [] : [flag, model])

const allowed = (
  { permissions }: ClientSettings,
  flags: Readonly<Record<Permissions, readonly string[]>>,
): readonly string[] => (permissions === undefined ? [] : flags[permissions])

const named = (session: Session): string[] => {
  if (session === undefined) return []
  return 'resume' in session ? ['--resume', session.resume] : ['--session-id', session.begin]
}

const CLAUDE: Preset = {
  client: 'claude',
  vendor: 'anthropic',
  variables: [
    'ANTHROPIC_API_KEY',
    'ANTHROPIC_AUTH_TOKEN',
    'ANTHROPIC_BASE_URL',
    'CLAUDE_CODE_OAUTH_TOKEN',
    'CLAUDE_CONFIG_DIR',
  ],
  ours: [
    '-p',
    '--print',
    '--output-format',
    '--input-format',
    '--session-id',
    '-r',
    '--resume',
    '-c',
    '--continue',
    '--fork-session',
    '--no-session-persistence',
    '--bg',
    '--background',
  ],
  namesSession: true,
  args: (settings, session) => [
    '-p',
    '--output-format',
    'stream-json',
    '--verbose',
    ...withModel('--model', settings),
    ...allowed(settings, {
      read: ['--permission-mode', 'plan'],
      edits: ['--permission-mode', 'acceptEdits'],
      all: ['--dangerously-skip-permissions'],
    }),
    ...settings.args,
    ...named(session),
  ],
  read: readClaude,
}

const CODEX: Preset = {
  client: 'codex',
  vendor: 'openai',
  variables: ['OPENAI_API_KEY', 'CODEX_API_KEY', 'CODEX_HOME'],
  ours: ['exec', 'resume', '--json', '--last', '--ephemeral', '-C', '--cd'],
  namesSession: false,
  args: (settings, session) => [
    'exec',
    '--json',
    '--skip-git-repo-check',
    ...withModel('--model', settings),
    ...allowed(settings, {
      read: ['--sandbox', 'read-only'],
      edits: ['--sandbox', 'workspace-write'],
      all: ['--dangerously-bypass-approvals-and-sandbox'],
    }),
    ...settings.args,
    ...(session !== undefined && 'resume' in session ? ['resume', session.resume] : []),
    '-',
  ],
  read: readCodex,
}

const GEMINI: Preset = {
  client: 'gemini',
  vendor: 'google',
  variables: [
    'GEMINI_API_KEY',
    'GOOGLE_API_KEY',
    'GOOGLE_GEMINI_BASE_URL',
    'GOOGLE_CLOUD_PROJECT',
    'GOOGLE_CLOUD_LOCATION',
    'GOOGLE_GENAI_USE_VERTEXAI',
    'GOOGLE_APPLICATION_CREDENTIALS',
  ],
  ours: ['-p', '--prompt', '-i', '--prompt-interactive', '-o', '--output-format', '--session-id', '-r', '--resume'],
  namesSession: true,
  args: (settings, session) => [
    '--output-format',
    'stream-json',
    // The folder is the one that a person configured; nobody is there to be asked whether to trust it.
    '--skip-trust',
    ...withModel('--model', settings),
    ...allowed(settings, {
      read: ['--approval-mode', 'plan'],
      edits: ['--approval-mode', 'auto_edit'],
      all: ['--approval-mode', 'yolo'],
    }),
    ...settings.args,
    ...named(session),
  ],
  read: readGemini,
}

export const PRESETS: Readonly<Record<Client, Preset>> = { claude: CLAUDE, codex: CODEX, gemini: GEMINI }

/** A name for a session, in the form that clients want: the same for the same words, and for no others. */
export function sessionName(...words: readonly string[]): string {
  const digits = digestOf(words)
  const variant = ((Number.parseInt(digits.slice(16, 17), 16) & 0x3) | 0x8).toString(16)
  const parts = [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `4${digits.slice(13, 16)}`,
    `${variant}${digits.slice(17, 20)}`,
  ]
  return [...parts, digits.slice(20, 32)].join('-')
}
