import { HoldfastError } from '../../base/errors.ts'
import { CLIENT_NAMES, factsOf, settingsFile } from './client.ts'
import type { ClientName, Scope, Surroundings } from './client.ts'
import { driftOf } from './drift.ts'
import type { Drift } from './drift.ts'
import { choicesIn } from './entries.ts'
import type { Wanted } from './entries.ts'
import { findOurs, readTree } from './merge.ts'
import type { Found } from './merge.ts'
import { obstaclesOf } from './obstacles.ts'
import { allRecords } from './record.ts'
import { readSettingsFile } from './settings-file.ts'

/** What one settings file says about us. */
export interface Status {
  readonly client: ClientName
  readonly scope: 'user' | 'project'
  readonly folder?: string
  readonly path: string
  readonly state: 'not-installed' | 'installed' | 'drifted'
  readonly events: readonly string[]
  /** Whether our rules decide what the client may do. */
  readonly permissions: boolean
  readonly drift: readonly Drift[]
}

export interface Question {
  readonly clients: readonly ClientName[]
  /** Projects to look at, besides those that we know of. */
  readonly folders: readonly string[]
  readonly home: string
  readonly surroundings: Surroundings
  readonly wanted: (client: ClientName) => Wanted
}

/** For each client the user's settings, and those of the projects that hold our entries or are asked for. */
export async function statusOf(question: Question): Promise<Status[]> {
  const records = await allRecords(question.home)
  const statuses = await Promise.all(
    question.clients.map(async (client) => {
      const user = await statusIn(question, client, { kind: 'user' })
      const folders = new Set([
        ...question.folders,
        ...records.flatMap((record) =>
          record.client === client && record.scope.kind === 'project' ? [record.scope.folder] : [],
        ),
      ])
      const projects = await Promise.all([...folders].map((folder) => statusOfProject(question, client, folder)))
      return [user, ...projects.flat().map((project) => besides(user, project))]
    }),
  )
  return statuses.flat()
}

/** Hooks of both places run: what comes to two handlers at once is counted twice. */
function besides(user: Status, project: Status): Status {
  if (user.state === 'not-installed' || project.state === 'not-installed') return project
  const twice: Drift = {
    what: 'also-for-user',
    detail: 'the settings of the user have them too, so each would run twice',
  }
  return { ...project, state: 'drifted', drift: [...project.drift, twice] }
}

async function statusOfProject(question: Question, client: ClientName, folder: string): Promise<Status[]> {
  const scope: Scope = { kind: 'project', folder }
  const own = await statusIn(question, client, scope)
  const others = await Promise.all(
    factsOf(client)
      .otherProjectFiles(folder)
      .map((path) => statusIn(question, client, scope, path)),
  )
  return [own, ...others.filter(({ state }) => state !== 'not-installed')]
}

async function statusIn(
  { surroundings, wanted }: Question,
  client: ClientName,
  scope: Scope,
  path = settingsFile(client, scope, surroundings),
): Promise<Status> {
  const about = { client, scope: scope.kind, ...(scope.kind === 'project' ? { folder: scope.folder } : {}), path }
  try {
    const { text } = await readSettingsFile(path)
    const ours = findOurs(readTree({ path, text, comments: factsOf(client).comments }))
    if (ours.length === 0) return { ...about, state: 'not-installed', events: [], permissions: false, drift: [] }
    const { permissions } = choicesIn(ours.map(({ handler }) => handler))
    const events = [...new Set(ours.map(({ event }) => event))]
    const obstacles = await obstaclesOf(client, path, surroundings)
    const drift = [
      ...driftOf(ours, asInstalled(wanted(client), ours)),
      ...obstacles.map((detail): Drift => ({ what: 'disabled', detail })),
    ]
    return { ...about, state: drift.length === 0 ? 'installed' : 'drifted', events, permissions, drift }
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error
    return {
      ...about,
      state: 'drifted',
      events: [],
      permissions: false,
      drift: [{ what: 'unreadable', detail: error.message }],
    }
  }
}

/** What is optional is as it was chosen; a daemon that is down may come back at the same address. */
function asInstalled(wanted: Wanted, ours: readonly Found[]): Wanted {
  const { daemon, startDaemon, permissions } = choicesIn(ours.map(({ handler }) => handler))
  return { ...wanted, daemon: daemon === undefined ? undefined : (wanted.daemon ?? daemon), startDaemon, permissions }
}

/** A line for the doctor. */
export interface HooksFinding {
  readonly check: string
  readonly status: 'ok' | 'warn'
  readonly detail: string
  readonly remedy?: string
}

/** Only where our entries are: a client without them is none of the doctor's business. */
export async function examineHooks(question: Omit<Question, 'clients' | 'folders'>): Promise<HooksFinding[]> {
  const statuses = await statusOf({ ...question, clients: CLIENT_NAMES, folders: [] })
  return statuses
    .filter(({ state, events }) => state !== 'not-installed' && events.length > 0)
    .map((status) => {
      const check = `hooks of ${factsOf(status.client).title}`
      const rules = status.permissions ? ', and what it may do is decided by your rules' : ''
      if (status.state === 'installed')
        return { check, status: 'ok', detail: `installed in ${status.path}${rules}` } as const
      const detail = `${status.path}: ${status.drift.map((drift) => drift.detail).join('; ')}`
      return { check, status: 'warn', detail, remedy: remedyOf(status) } as const
    })
}

export function remedyOf({ client, folder, drift }: Status): string {
  const where = folder === undefined ? '' : ` --project ${folder}`
  if (drift.some(({ what }) => what === 'also-for-user'))
    return `\`holdfast hooks remove ${client}${where}\` leaves those of the user`
  if (drift.some(({ what }) => what === 'unreadable')) return 'mend the file'
  if (drift.every(({ what }) => what === 'disabled')) return 'take that setting out of the file'
  return `\`holdfast hooks install ${client}${where}\` puts them right`
}
