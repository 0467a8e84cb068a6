import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { describe, expect, test } from 'vitest'

import type { RunId } from '../../src/base/ids.ts'
import { readOwner } from '../../src/processes/attempt-folder.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { handOverRun } from '../../src/runs/recover.ts'
import { refOf } from '../../src/workers/execute.ts'
import { checkPlace, treePlace } from '../../src/workers/workspace/ports.ts'
import type { WorkspacePoint } from '../../src/workers/workspace/ports.ts'
import { findWorkspace } from '../../src/workspace/workspace.ts'
import type { Workspace } from '../../src/workspace/workspace.ts'
import { builtFixture } from '../support/built-fixture.ts'
import { AgentInstallation, POLICY, TELL } from '../support/agents.ts'
import { processesWith, startProcess, supervisorsOf, until } from '../support/holdfast.ts'
import { Repository } from '../support/repository.ts'
import { WorkStage } from './work-stage.ts'

const DOOMED = builtFixture(new URL('../crash/doomed-workspace.ts', import.meta.url))

const start = (stage: WorkStage, point: string) =>
  startProcess(process.execPath, [DOOMED, stage.database.url, stage.home, point], stage.world.env)

/** A worker begins the check and dies; the supervisor may need longer to begin than the next worker to come. */
async function leaveChecking(stage: WorkStage, id: RunId): Promise<Workspace> {
  await start(stage, 'workspace/check-started').ended
  const workspace = await stage.workspace(id)
  const { command } = checkPlace(workspace, workspace.checkMark!)
  await until('its supervisor has it', async () => readOwner(command))
  return workspace
}

describe('a worker that dies while the check of a run is under way', () => {
  const check = { command: 'sleep 1; test -f new.txt && echo "checked by $$"' }

  test('leaves it to its supervisor: the next one reads its end, and it was run once', async () => {
    const stage = await WorkStage.begin()
    const id = await stage.submit('echo new > new.txt', { check })
    const { checkMark } = await leaveChecking(stage, id)
    expect((await start(stage, '-').ended).stdout).toContain('survived')
    const { run, workspace } = await stage.over(id)
    expect([run.state, workspace.state, workspace.checkMark]).toEqual(['succeeded', 'landed', checkMark])
    expect(stage.world.user(['rev-list', '--count', 'main'])).toBe('2')
    await stage.assertSound()
  })

  test('together with its supervisor makes the next one run it again, on the same commit', async () => {
    const stage = await WorkStage.begin()
    const id = await stage.submit('echo new > new.txt', { check })
    await start(stage, 'workspace/check-started').ended
    const before = await stage.workspace(id)
    for (const { pid } of supervisorsOf(stage.home)) process.kill(pid, 'SIGKILL')
    expect((await start(stage, '-').ended).stdout).toContain('survived')
    const { workspace } = await stage.over(id)
    expect(workspace).toMatchObject({ state: 'landed', sha: before.sha, verdict: { verdict: 'passed' } })
    expect(workspace.checkMark).not.toBe(before.checkMark)
    expect(stage.world.user(['rev-list', '--count', 'main'])).toBe('2')
    await stage.assertSound()
  })
})

test('a check whose worker died ends with a cancel: the run is cancelled when its processes are dead [control/stop-means-stopped]', async () => {
  const stage = await WorkStage.begin()
  const before = stage.seen()
  const id = await stage.submit('echo new > new.txt', { check: { command: 'sleep 600' } })
  await start(stage, 'workspace/check-started').ended
  const [supervisor] = supervisorsOf(stage.home)
  expect(supervisor).toBeDefined()
  await stage.store.apply(cancelRun, id, { by: 'a person' })
  expect((await start(stage, '-').ended).stdout).toContain('survived')
  const { run, workspace } = await stage.over(id)
  expect([run.state, workspace.state]).toEqual(['cancelled', 'discarded'])
  expect(supervisorsOf(stage.home)).toEqual([])
  expect(stage.seen()).toEqual(before)
  await stage.assertSound()
})

/** A worker that comes to a point and waits there, while another one takes its run. */
async function latecomer(stage: WorkStage, at: WorkspacePoint) {
  const seen: WorkspacePoint[] = []
  const gate = Promise.withResolvers<void>()
  const worker = await stage.worker((name) => {
    seen.push(name)
    return name === at ? gate.promise : undefined
  })
  const reached = () => until(`it is at ${at}`, async () => seen.includes(at) || undefined)
  const goOn = async () => {
    gate.resolve()
    await until('it is through', async () => worker.heldCount === 0 || undefined)
    return seen
  }
  return { worker, reached, goOn }
}

describe('a worker that comes back late, after another has taken its run', () => {
  test('ends no check that was adopted, although it would begin another [runs/fenced]', async () => {
    const stage = await WorkStage.begin()
    const go = `${stage.home}-go`
    const check = { command: `until test -f ${go}; do sleep 0.05; done` }
    const id = await stage.submit('echo new > new.txt', { check })
    const { checkMark, folder } = await leaveChecking(stage, id)
    const late = await latecomer(stage, 'workspace/locked')
    const [claim] = await late.worker.recover(id)
    await late.reached()
    await stage.store.apply(handOverRun, refOf(claim!))
    const [taken] = await (await stage.worker()).recover(id)
    const holder = join(checkPlace({ folder }, checkMark!).command, `holder-${taken!.run.fence}`)
    await until('the check is adopted', async () => existsSync(holder) || undefined)
    stage.world.user(['commit', '--allow-empty', '-m', 'meanwhile'])
    await late.goOn()
    expect(supervisorsOf(stage.home)).toHaveLength(1)
    expect(await stage.workspace(id)).toMatchObject({ state: 'prepared', checkMark })
    writeFileSync(go, '')
    const { run, workspace } = await stage.over(id)
    expect([run.state, workspace.state]).toEqual(['succeeded', 'landed'])
    await stage.assertSound()
  })

  test('starts no check of a run that is over', async () => {
    const stage = await WorkStage.begin()
    const id = await stage.submit('echo new > new.txt', { check: { command: 'test -f new.txt' } })
    await start(stage, 'workspace/prepared').ended
    const late = await latecomer(stage, 'workspace/checking')
    const [claim] = await late.worker.recover(id)
    await late.reached()
    await stage.store.apply(handOverRun, refOf(claim!))
    await (await stage.worker()).recover(id)
    expect((await stage.over(id)).workspace.state).toBe('landed')
    expect(await late.goOn()).not.toContain('workspace/check-started')
    await stage.assertSound()
  })
})

test('a check that was stopped although nobody cancelled its run says nothing: it is run again', async () => {
  const stage = await WorkStage.begin()
  const go = `${stage.home}-go`
  const id = await stage.submit('echo new > new.txt', { check: { command: `test -f ${go} || exec sleep 600` } })
  const worker = await stage.worker()
  const performed = worker.perform(id)
  const { checkMark, folder } = await until('its check is under way', async () => {
    const found = await stage.store.read(findWorkspace, id)
    return found?.checkMark == null || !existsSync(join(checkPlace(found, found.checkMark).command, 'command.json'))
      ? undefined
      : found
  })
  writeFileSync(go, '')
  // As a machine that goes down tells everybody.
  process.kill(supervisorPid(checkPlace({ folder }, checkMark!).command), 'SIGTERM')
  await performed
  const { run, workspace } = await stage.over(id)
  expect([run.state, workspace.state]).toEqual(['succeeded', 'landed'])
  expect(workspace.checkMark).not.toBe(checkMark)
})

const supervisorPid = (folder: string): number => {
  const owner = readOwner(folder)
  if (owner?.kind !== 'supervisor') throw new Error('nobody supervises it')
  return owner.identity.pid
}

/** Writes a file, asks a person, and writes another one. */
const asking = (root: string) => ({
  replies: [
    { text: '', toolCalls: [{ tool: 'files_write', input: { path: 'first.txt', content: 'one\n' } }] },
    { text: '', toolCalls: [{ tool: 'tell', input: { whom: 'everybody' } }] },
    { text: '', toolCalls: [{ tool: 'files_write', input: { path: 'second.txt', content: 'two\n' } }] },
    { text: 'Done.' },
  ],
  tools: ['files', 'tell'],
  workspace: { root, mode: 'transaction', check: 'test -f first.txt && test -f second.txt' },
})

async function approveAll(place: AgentInstallation): Promise<void> {
  for (const { id } of await place.json<readonly { readonly id: string }[]>(['approvals', 'list']))
    await place.run(['approvals', 'approve', id])
}

describe('a run of an agent that waits for a person in the middle of its work', () => {
  test.each([
    { title: 'goes on in its tree', lose: false },
    { title: 'goes on from its checkpoint when its tree is gone', lose: true },
  ])('$title, whoever takes it up, and lands whole', async ({ lose }) => {
    const repo = new Repository()
    const settings = { agents: { coder: asking(repo.folder) }, tools: { tell: TELL }, policy: POLICY }
    const place = new AgentInstallation(settings)
    const first = await place.daemon()
    const { runId } = await place.send('coder')
    await place.reaches(runId, 'parked')
    const store = await place.store()
    const parked = await until('it has a workspace', () => store.read(findWorkspace, runId))
    expect(parked).toMatchObject({ state: 'active', landing: false })
    expect(repo.git('show', `refs/holdfast/tx/${runId}:first.txt`)).toBe('one')
    first.kill('SIGKILL')
    await first.ended
    if (lose) rmSync(join(parked.folder, String(parked.opening)), { recursive: true })
    await approveAll(place)
    await place.daemon()
    expect((await place.reaches(runId, 'succeeded', 'failed')).state).toBe('succeeded')
    const { actions } = await place.whole(runId)
    expect(actions.map(({ tool, state }) => `${tool} ${state}`)).toEqual([
      'files_write done',
      'tell done',
      'files_write done',
    ])
    const landed = await until('it has landed', async () => {
      const found = await store.read(findWorkspace, runId)
      return found?.state === 'landed' ? found : undefined
    })
    expect(landed.changed).toEqual(['first.txt', 'second.txt'])
    expect([repo.commits, repo.read('first.txt'), repo.read('second.txt')]).toEqual([2, 'one\n', 'two\n'])
    expect(repo.git('status', '--porcelain')).toBe('')
    expect(dirname(landed.folder)).toBe(join(place.home, 'workspaces'))
  })

  const within = (mode: string) => (root: string) => ({ root, mode })
  const outside = () => undefined
  test.each([
    { title: 'and has none any more', first: within('transaction'), later: outside, end: 'landed' },
    { title: 'and is only watched by now', first: within('transaction'), later: within('shadow'), end: 'landed' },
    {
      title: 'and was only watched until now',
      first: within('shadow'),
      later: within('transaction'),
      end: 'would_land',
    },
    { title: 'and had none until now', first: outside, later: within('transaction'), end: undefined },
  ])('works on where it began, whatever its agent has by then: $title', async ({ first, later, end }) => {
    const repo = new Repository()
    const seen = join(repo.folder, '.git', 'seen')
    const look = { text: '', toolCalls: [{ tool: 'shell', input: { command: `pwd >> ${seen}` } }] }
    const ask = { text: '', toolCalls: [{ tool: 'tell', input: { whom: 'everybody' } }] }
    const walker = { replies: [look, ask, look, { text: 'Done.' }], tools: ['shell', 'tell'] }
    const settings = (workspace: object | undefined) => ({
      agents: { walker: { ...walker, workspace } },
      tools: { tell: TELL },
      policy: POLICY,
    })
    const place = new AgentInstallation(settings(first(repo.folder)))
    const daemon = await place.daemon()
    const { runId } = await place.send('walker')
    await place.reaches(runId, 'parked')
    daemon.kill('SIGKILL')
    await daemon.ended
    place.configure(settings(later(repo.folder)))
    await approveAll(place)
    await place.daemon()
    const { state, actions } = await place.ended(runId)
    expect([state, ...actions.map((each) => each.state)]).toEqual(['succeeded', 'done', 'done', 'done'])
    const [before, after] = readFileSync(seen, 'utf8').split('\n')
    expect(after).toBe(before)
    const store = await place.store()
    const isOver = async () => (await store.read(findWorkspace, runId))?.state === end || undefined
    await until(`its files are ${end}`, isOver)
  })

  test('does there what a person made of its call [approvals/bound]', async () => {
    const repo = new Repository()
    const settings = { agents: { coder: asking(repo.folder) }, tools: { tell: TELL }, policy: POLICY }
    const place = new AgentInstallation(settings)
    await place.daemon()
    const { runId } = await place.send('coder')
    await place.reaches(runId, 'parked')
    type Asked = { readonly id: string }
    const [approval] = await place.json<readonly Asked[]>(['approvals', 'list'])
    const changed = ['approvals', 'edit', approval!.id, '--input', '{"whom":"nobody"}']
    const edited = await place.json<Asked>(changed)
    await place.run(['approvals', 'approve', edited.id])
    await place.reaches(runId, 'succeeded', 'failed')
    const told = (await place.whole(runId)).actions.filter(({ tool }) => tool === 'tell')
    expect(told.map(({ state, input }) => ({ state, input }))).toEqual([
      { state: 'skipped', input: { whom: 'everybody' } },
      { state: 'done', input: { whom: 'nobody' } },
    ])
  })
})

const SERVER = fileURLToPath(new URL('../tools/fixtures/mcp-server.mjs', import.meta.url))

test.each([
  { title: 'in a workspace', withFiles: true, tools: ['shell'] },
  { title: 'beside tools of somebody else', withFiles: false, tools: ['shell', 'mcp:polite'] },
])('a tool whose worker died ends with a cancel, $title [control/stop-means-stopped]', async ({ withFiles, tools }) => {
  const repo = new Repository()
  const call = { tool: 'shell', input: { command: 'exec sleep 600' } }
  const replies = [{ text: '', toolCalls: [call] }, { text: 'Done.' }]
  const workspace = withFiles ? { root: repo.folder, mode: 'transaction' } : undefined
  const polite = { command: process.execPath, args: [SERVER, join(repo.folder, '.git', 'ledger')] }
  const place = new AgentInstallation({ agents: { coder: { replies, tools, workspace } }, mcpServers: { polite } })
  const asleep = () => processesWith(place.home).filter(({ command }) => command === 'sleep 600')
  const daemon = await place.daemon()
  const { runId } = await place.send('coder')
  await until('its tool is under way', async () => asleep().length > 0 || undefined)
  daemon.kill('SIGKILL')
  await daemon.ended
  await (await place.store()).apply(cancelRun, runId, { by: 'a person' })
  await place.daemon()
  const { actions } = await place.is(runId, 'cancelled')
  expect([asleep(), actions.map(({ state }) => state)]).toEqual([[], ['in_doubt']])
})

describe('a tool whose worker died in a tree is cancelled, and its stop command', () => {
  test.each([
    { title: 'is run in that tree', lose: false },
    { title: 'is run nowhere else when that is gone', lose: true },
  ])('$title [control/stop-means-stopped]', async ({ lose }) => {
    const repo = new Repository()
    const seen = join(repo.folder, '.git', 'seen')
    const effect = { effect: 'write', description: 'Begins a service', input: { type: 'object' } }
    const serve = { ...effect, command: ['/bin/sh', '-c', 'exec sleep 600'], stop: ['sh', '-c', `pwd >> ${seen}`] }
    const replies = [{ text: '', toolCalls: [{ tool: 'serve', input: {} }] }, { text: 'Done.' }]
    const workspace = { root: repo.folder, mode: 'transaction' }
    const agents = { coder: { replies, tools: ['serve'], workspace } }
    const place = new AgentInstallation({ agents, tools: { serve } })
    const daemon = await place.daemon()
    const { runId } = await place.send('coder')
    const asleep = () => processesWith(place.home).filter(({ command }) => command === 'sleep 600')
    await until('its tool is under way', async () => asleep().length > 0 || undefined)
    daemon.kill('SIGKILL')
    await daemon.ended
    const store = await place.store()
    const { folder, opening } = (await store.read(findWorkspace, runId))!
    if (lose) rmSync(join(folder, String(opening)), { recursive: true })
    await store.apply(cancelRun, runId, { by: 'a person' })
    await place.daemon()
    const { actions } = await place.is(runId, 'cancelled')
    const { state, error } = actions[0]!
    expect([asleep(), state]).toEqual([[], 'in_doubt'])
    expect(existsSync(seen) ? readFileSync(seen, 'utf8') : '').toBe(
      lose ? '' : `${treePlace({ folder }, opening!).tree}\n`,
    )
    expect(error?.includes('its stop command failed')).toBe(lose)
  })
})
