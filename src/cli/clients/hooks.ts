import { existsSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { resolve } from 'node:path'

import { Argument } from 'commander'
import type { Command } from 'commander'

import { HoldfastError } from '../../base/errors.ts'
import { CLIENT_NAMES, factsOf, whatToKnow } from '../../hooks/install/client.ts'
import type { ClientName, Scope } from '../../hooks/install/client.ts'
import { coloured } from '../../hooks/install/diff.ts'
import type { Choices, Wanted } from '../../hooks/install/entries.ts'
import { carryOut, installedChoices, planInstall, planRemove } from '../../hooks/install/install.ts'
import type { Change, Place } from '../../hooks/install/install.ts'
import { hasPassword, hookProgram, storeToWrite } from '../../hooks/install/program.ts'
import { remedyOf, statusOf } from '../../hooks/install/status.ts'
import type { Question, Status } from '../../hooks/install/status.ts'
import { CONDUCTOR_TEMPLATE } from '../../hooks/install/template.ts'
import { readWindowUrl } from '../../workers/home.ts'
import { readEnvironment } from '../around/environment.ts'
import type { Environment } from '../around/environment.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { beDiscreet } from '../around/discreet.ts'
import { makeOutput, table, visible } from '../words/output.ts'
import type { Output } from '../words/output.ts'
import { hasTerminal, isConfirmed } from '../around/person.ts'

interface HooksFlags {
  readonly home?: string
  readonly store?: string
  readonly json?: boolean
  readonly user?: boolean
  readonly project?: string
  readonly yes?: boolean
  readonly dryRun?: boolean
  readonly tools?: boolean
  readonly startDaemon?: boolean
  readonly permissions?: boolean
  readonly storeFromEnv?: boolean
}

const TOOLS_NOTE = 'Claude Code needs the token to report tool calls: set HOLDFAST_TOKEN where you start it'

const client = (name: string) => new Argument(name, 'which command-line agent').choices(CLIENT_NAMES)

export function addHooks(hooks: Command, setExit: SetExit): void {
  changing(hooks.command('install'), 'add our entries to the settings of an agent, or put them right')
    .option('--tools', 'Claude Code: report each tool call too, to the daemon, which must be running')
    .option('--start-daemon', 'the start of a session starts the daemon, where none is running')
    .option(
      '--permissions',
      'Claude Code: what it may do is decided by your rules, and by people who are asked by Holdfast',
    )
    .option('--store-from-env', 'do not write the store down: the hooks read HOLDFAST_STORE where they are started')
    .action(async (name: ClientName, _: unknown, command: Command) => setExit(await install(name, command)))
  changing(hooks.command('remove'), 'take our entries out of the settings of an agent again').action(
    async (name: ClientName, _: unknown, command: Command) => setExit(await remove(name, command)),
  )
  hooks
    .command('status')
    .description('whether they are installed, and what is not as it should be (exit 1: something, 3: not installed)')
    .addArgument(client('[client]'))
    .option('--project <dir>', 'look at the settings of this folder too')
    .action(async (name: ClientName | undefined, _: unknown, command: Command) => setExit(await status(name, command)))
  hooks
    .command('template')
    .description('instructions for an agent that conducts others, to put into its CLAUDE.md, AGENTS.md or GEMINI.md')
    .action((_: unknown, command: Command) => {
      const { json } = command.optsWithGlobals<HooksFlags>()
      makeOutput(json === true).result({ template: CONDUCTOR_TEMPLATE }, () => CONDUCTOR_TEMPLATE)
    })
}

const changing = (command: Command, description: string) =>
  command
    .description(description)
    .addArgument(client('<client>'))
    .option('--user', 'for every session of this user (the default)')
    .option('--project <dir>', 'only for sessions in this folder')
    .option('--yes', 'do it without asking')
    .option('--dry-run', 'show what would change, and change nothing')

async function install(name: ClientName, command: Command): Promise<number> {
  await beDiscreet()
  const { flags, output, environment, place } = setUp(name, command)
  if (!existsSync(hookProgram().script)) throw incomplete()
  const question = questionOf(environment, [name])
  const [user, ...projects] = await statusOf(question)
  if (place.scope.kind === 'project' && user !== undefined && user.state !== 'not-installed') throw alreadyForUser(user)
  const change = await planInstall(place, { ...wantedBy(environment, flags, name), ...(await chosen(place, flags)) })
  const twice = place.scope.kind === 'user' ? projects.filter(({ state }) => state !== 'not-installed') : []
  const notes = [
    ...whatToKnow(name, place.scope),
    ...(flags.tools === true ? [TOOLS_NOTE] : []),
    ...twice.map(({ folder }) => `${folder} has them too: holdfast hooks remove ${name} --project ${folder}`),
  ]
  return propose(change, flags, output, notes)
}

async function remove(name: ClientName, command: Command): Promise<number> {
  await beDiscreet()
  const { flags, output, place } = setUp(name, command)
  return propose(await planRemove(place), flags, output, [])
}

function setUp(name: ClientName, command: Command) {
  const flags = command.optsWithGlobals<HooksFlags>()
  const environment = readEnvironment(flags)
  const place: Place = {
    client: name,
    scope: scopeOf(flags),
    home: environment.home,
    surroundings: around(environment),
  }
  return { flags, output: makeOutput(flags.json === true), environment, place }
}

const around = ({ variables }: Environment) => ({ userHome: homedir(), variables })

function scopeOf({ user, project }: HooksFlags): Scope {
  if (project === undefined) return { kind: 'user' }
  if (user === true)
    throw new HoldfastError('usage/hooks-scope', '--user and --project exclude each other', { remedy: 'say one' })
  const folder = resolve(project)
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return { kind: 'project', folder }
  throw new HoldfastError('usage/hooks-scope', `${folder} is not a folder`, { remedy: 'name the folder of a project' })
}

const alreadyForUser = ({ client: name, path }: Status) =>
  new HoldfastError('hooks/already-for-user', `${path} has the hooks for every project; here each would run twice`, {
    remedy: `remove those first: holdfast hooks remove ${name}`,
  })

const incomplete = () =>
  new HoldfastError('hooks/no-program', `${hookProgram().script} is not there, so there is nothing to install`, {
    remedy: 'install Holdfast again',
  })

/** Places that were named are passed on: a client may be started without these variables. */
function wantedBy({ home, store, variables }: Environment, flags: HooksFlags, name: ClientName): Wanted {
  const named = flags.home !== undefined || (variables['HOLDFAST_HOME'] ?? '') !== ''
  const written = store === undefined || flags.storeFromEnv === true ? undefined : storeToWrite(store)
  const place = { home: named ? home : undefined, store: written }
  return { client: name, ...hookProgram(), ...place, daemon: undefined, startDaemon: false, permissions: false }
}

/** What was chosen once stays: installing again without the flags is for putting things right. */
async function chosen(place: Place, flags: HooksFlags): Promise<Choices> {
  if (flags.permissions === true && place.client !== 'claude')
    throw new HoldfastError(
      'usage/hooks-permissions',
      '--permissions is for Claude Code: the others cannot wait for it',
      { remedy: 'leave it out, or install it for claude' },
    )
  const before = await installedChoices(place)
  const running = readWindowUrl(place.home)
  const kept = before.daemon === undefined ? undefined : (running ?? before.daemon)
  return {
    daemon: flags.tools === true ? daemonForTools(place, running) : kept,
    startDaemon: flags.startDaemon === true || before.startDaemon,
    permissions: flags.permissions === true || before.permissions,
  }
}

function daemonForTools({ client: name }: Place, running: string | undefined): string {
  if (name !== 'claude')
    throw new HoldfastError('usage/hooks-tools', '--tools is for Claude Code: the others have no hooks over HTTP', {
      remedy: 'leave it out, or install it for claude',
    })
  if (running !== undefined) return running
  throw new HoldfastError('usage/hooks-tools', 'no daemon is running that could be told of tool calls', {
    remedy: 'start it with `holdfast up`, at a --port that stays the same',
  })
}

export const questionOf = (environment: Environment, clients: readonly ClientName[]): Question => ({
  clients,
  folders: [],
  home: environment.home,
  surroundings: around(environment),
  wanted: (name) => {
    const storeFromEnv = environment.store !== undefined && hasPassword(environment.store)
    const daemon = readWindowUrl(environment.home)
    return { ...wantedBy(environment, { storeFromEnv }, name), daemon }
  },
})

type Answer = 'nothing-to-do' | 'dry-run' | 'done' | 'declined' | 'waiting'

const EXIT_OF: Readonly<Record<Answer, number>> = {
  'nothing-to-do': EXIT.done,
  'dry-run': EXIT.done,
  done: EXIT.done,
  declined: EXIT.refused,
  waiting: EXIT.waiting,
}

/** Shows the change, and makes it if somebody says yes. */
async function propose(change: Change, flags: HooksFlags, output: Output, notes: readonly string[]): Promise<number> {
  if (!output.json && change.diff !== '') process.stdout.write(shown(change.diff))
  const answer = await decide(change, flags)
  const { backup } = answer === 'done' ? await carryOut(change) : { backup: undefined }
  const told = answer === 'done' && change.verb === 'install' ? notes : []
  output.result(view(change, answer, backup, told), () => visible(sentence(change, answer, backup)))
  if (!output.json) for (const note of told) output.note(note)
  if (answer === 'waiting') output.note('nothing was changed; look at it, then say --yes')
  return EXIT_OF[answer]
}

const shown = (diff: string) =>
  process.stdout.isTTY && process.env['NO_COLOR'] === undefined ? coloured(visible(diff)) : visible(diff)

async function decide({ kind }: Change, { yes, dryRun, json }: HooksFlags): Promise<Answer> {
  if (kind === 'none') return 'nothing-to-do'
  if (dryRun === true) return 'dry-run'
  if (yes === true) return 'done'
  if (json === true || !hasTerminal()) return 'waiting'
  return (await isConfirmed('Write this?')) ? 'done' : 'declined'
}

const view = (change: Change, outcome: Answer, backup: string | undefined, notes: readonly string[]) => ({
  client: change.place.client,
  scope: change.place.scope.kind,
  ...(change.place.scope.kind === 'project' ? { folder: change.place.scope.folder } : {}),
  path: change.file.path,
  ...(change.file.target === resolve(change.file.path) ? {} : { target: change.file.target }),
  outcome,
  change: change.kind,
  diff: change.diff,
  ...(backup === undefined ? {} : { backup }),
  notes,
})

function sentence({ verb, kind, file, place }: Change, answer: Answer, backup: string | undefined): string {
  const { title } = factsOf(place.client)
  if (answer === 'nothing-to-do')
    return verb === 'install' ? `already installed: ${file.path}` : `not installed: ${file.path} has no entries of ours`
  if (answer !== 'done') return answer === 'dry-run' ? 'nothing was changed' : ''
  if (kind === 'remove') return `removed: ${title} no longer reports to Holdfast (${file.path})`
  const former = backup === undefined ? '' : `\nwhat it was before: ${backup}`
  return `${kind === 'update' ? 'updated' : 'installed'}: ${title} reports to Holdfast (${file.path})${former}`
}

async function status(name: ClientName | undefined, command: Command): Promise<number> {
  const flags = command.optsWithGlobals<HooksFlags>()
  const scope = scopeOf(flags)
  const question = questionOf(readEnvironment(flags), name === undefined ? CLIENT_NAMES : [name])
  const statuses = await statusOf({ ...question, folders: scope.kind === 'project' ? [scope.folder] : [] })
  makeOutput(flags.json === true).result(statuses, () => describe(statuses))
  if (statuses.some(({ state }) => state === 'drifted')) return EXIT.failed
  return statuses.some(({ state }) => state === 'installed') ? EXIT.done : EXIT.notFound
}

function describe(statuses: readonly Status[]): string {
  const rows = statuses.map(({ client: name, scope, state, permissions, path }) => {
    const words = `${state.replace('-', ' ')}${permissions ? ', with permissions' : ''}`
    return [name, scope, words, path]
  })
  const drifts = statuses
    .filter(({ drift }) => drift.length > 0)
    .map((each) =>
      [
        '',
        `${each.client}, ${each.path}:`,
        ...each.drift.map(({ what, detail }) => `  ${what}: ${detail}`),
        `  ${remedyOf(each)}`,
      ].join('\n'),
    )
  return [table(['CLIENT', 'SCOPE', 'STATE', 'SETTINGS'], rows), ...drifts.map((text) => visible(text))].join('\n')
}
