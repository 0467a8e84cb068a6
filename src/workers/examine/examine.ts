import { existsSync, readdirSync } from 'node:fs'
import { dirname } from 'node:path'

import { judgeProcess } from '../../processes/identity.ts'
import { heldAttempts } from '../../runs/recover.ts'
import type { HeldAttempt } from '../../runs/recover.ts'
import { knownAgents, liveDaemons } from '../../runs/worker.ts'
import { systemClock } from '../../base/clock.ts'
import { LIMITS } from '../../base/limits.ts'
import { noticesGivenUp } from '../../notify/notice.ts'
import { countOverdue, troubledSchedules } from '../../schedule/trouble.ts'
import type { Store } from '../../store/store.ts'
import { examineClock } from './clock.ts'
import { examineSecrets } from './secrets.ts'
import { examineWorkspaces } from './workspaces.ts'
import { homePaths } from '../home.ts'
import { groundFor, isLeftToItsUser } from '../recover.ts'

/** One thing that was looked at. */
export interface Finding {
  readonly check: string
  readonly status: 'ok' | 'warn' | 'fail'
  readonly detail: string
  readonly remedy?: string
}

interface Examined {
  readonly home: string
  readonly store: Store
}

/** What the store says, and what is in the home folder. */
export async function examine({ home, store }: Examined): Promise<Finding[]> {
  const held = await store.read(heldAttempts)
  return [
    await examineStore(store),
    await examineClock(store, systemClock),
    ...examineSecrets(home),
    examineDecisions(store, home),
    ...(await examineNotices(store)),
    ...(await examineSchedules(store)),
    ...(await examineWorkspaces(store)),
    await examineDaemon(store, home, held),
    ...examineSpool(home),
    ...held.map(examineHeld).filter((finding) => finding !== undefined),
    ...(await examineAgents(store, held)),
  ]
}

async function examineStore(store: Store): Promise<Finding> {
  const damage = await store.check()
  if (damage.length === 0) return { check: 'store', status: 'ok', detail: `${store.engine}, readable and whole` }
  return {
    check: 'store',
    status: 'fail',
    detail: `the database is damaged: ${damage.slice(0, 3).join('; ')}`,
    remedy: 'stop everything that uses it, keep a copy, restore a backup',
  }
}

/** What keeps an agent from deciding for itself, and what does not. */
function examineDecisions({ engine }: Store, home: string): Finding {
  const reach = engine === 'sqlite' ? `the files of ${home}` : `the database, or the token and address in ${home}`
  return {
    check: 'decisions',
    status: 'ok',
    detail:
      'from inside a run the command line decides nothing; that is a guard-rail, ' +
      `because a process of the same user can reach ${reach}`,
    remedy: 'where agents must not, run them as another user, who may not read that folder',
  }
}

const A_DAY = 86_400_000

/** Somebody should have been told something, and was not. */
async function examineNotices(store: Store): Promise<Finding[]> {
  const missed = await store.read(noticesGivenUp, LIMITS.page, A_DAY)
  const [last] = missed
  if (last === undefined) return []
  return [
    {
      check: 'notices',
      status: 'warn',
      detail: `${missed.length} in the last day reached nobody, the last by ${last.channel}: ${last.error ?? ''}`,
      remedy: 'mend "notify" in the configuration; `holdfast approvals` and `holdfast doubts` list what waits',
    },
  ]
}

/** What fails again and again, or has been due and nobody was there. One that a person paused is meant to be. */
async function examineSchedules(store: Store): Promise<Finding[]> {
  const failing = (await store.read(troubledSchedules, LIMITS.page)).filter(({ failures }) => failures > 0)
  const { count } = await store.read(countOverdue, LIMITS.misfireGraceMs)
  return [
    ...failing.map(({ name, state, failures }): Finding => ({
      check: 'schedule',
      status: 'warn',
      detail: `${name} failed ${failures === 1 ? 'the last time' : `${failures} times in a row`}${state === 'paused' ? ' and is paused' : ''}`,
      remedy: `\`holdfast schedule show ${name}\` says why${state === 'paused' ? `; \`holdfast schedule resume ${name}\` lets it go on` : ''}`,
    })),
    ...(count === 0 ? [] : [overdue(count)]),
  ]
}

const overdue = (count: number): Finding => ({
  check: 'schedules',
  status: 'warn',
  detail: `due, and nobody acts on it: ${count}`,
  remedy: 'start `holdfast up`; what was missed then follows its misfire policy',
})

async function examineDaemon(store: Store, home: string, held: readonly HeldAttempt[]): Promise<Finding> {
  const daemons = (await store.read(liveDaemons, null)).filter(({ identity }) => judgeProcess(identity) !== 'dead')
  const [daemon] = daemons
  if (daemon !== undefined)
    return { check: 'daemon', status: 'ok', detail: `process ${daemon.identity.pid} on ${daemon.identity.host}` }
  const lost = held.filter((attempt) => groundFor(attempt, judgeProcess(attempt.identity)) !== undefined).length
  if (lost === 0)
    return { check: 'daemon', status: 'ok', detail: `none is running for ${home}; detached runs wait for one` }
  return {
    check: 'daemon',
    status: 'warn',
    detail: `runs without a worker: ${lost}, and no daemon is running`,
    remedy: '`holdfast up` settles them',
  }
}

/** Events of hooks that nobody has told yet, and records that were set aside because they could not be read. */
function examineSpool(home: string): Finding[] {
  const { corrupt } = homePaths(home)
  const spool = dirname(corrupt)
  const namesIn = (folder: string) => (existsSync(folder) ? readdirSync(folder) : [])
  const counted = [
    {
      what: 'events of hooks that are not told yet',
      count: namesIn(spool).filter((name) => /\.json(?:\.\d+-\d+)?$/.test(name)).length,
      remedy: `\`holdfast up\` tells them; what stays then is in ${spool}`,
    },
    {
      what: 'records of hooks that could not be read',
      count: namesIn(corrupt).length,
      remedy: `look at them in ${corrupt}, and remove what is of no use`,
    },
  ]
  return counted
    .filter(({ count }) => count > 0)
    .map(({ what, count, remedy }) => ({ check: 'spool', status: 'warn', detail: `${what}: ${count}`, remedy }))
}

/** Only what needs a person: a worker that cannot be seen from here, with a command that may be running. */
function examineHeld(held: HeldAttempt): Finding | undefined {
  if (groundFor(held, judgeProcess(held.identity)) !== undefined && isLeftToItsUser(held))
    return {
      check: 'run',
      status: 'warn',
      detail: `${held.runId} lost its worker, and its command is below ${held.home}, which this user may not enter`,
      remedy: 'start `holdfast up` there as the user whose folder that is',
    }
  if (judgeProcess(held.identity) !== 'unreachable' || held.leaseOver === 0 || held.startingAt === null)
    return undefined
  return {
    check: 'run',
    status: 'warn',
    detail: `${held.runId} is held by a worker on ${held.identity.host}, which has been silent for longer than its lease`,
    remedy: 'start Holdfast there again; if that machine is gone for good, `holdfast runs disown` ends the run as lost',
  }
}

/** What lost its worker, and can be taken over by nobody. */
async function examineAgents(store: Store, held: readonly HeldAttempt[]): Promise<Finding[]> {
  const known = new Set((await store.read(knownAgents)).map(({ agent }) => agent))
  const isStranded = (each: HeldAttempt) =>
    each.kind === 'agent' && !known.has(each.agent) && groundFor(each, judgeProcess(each.identity)) !== undefined
  return held.filter(isStranded).map(({ runId, agent }) => ({
    check: 'run',
    status: 'warn',
    detail: `${runId} waits for its agent "${agent}", which nobody has`,
    remedy: `give it back its agent in the configuration, or end it: \`holdfast runs cancel ${runId}\``,
  }))
}
