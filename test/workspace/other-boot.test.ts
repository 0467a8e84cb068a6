import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { newMessageId, newRunId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId } from '../../src/base/ids.ts'
import { isOfThisBoot, noteBoot } from '../../src/git/tree.ts'
import { NO_USAGE } from '../../src/loop/usage.ts'
import { handOverRun } from '../../src/runs/recover.ts'
import { sendMessage } from '../../src/runs/send.ts'
import type { AnyAgent } from '../../src/workers/agents/execute-agent.ts'
import { refOf } from '../../src/workers/execute.ts'
import { checkPlace, treePlace } from '../../src/workers/workspace/ports.ts'
import { findWorkspace } from '../../src/workspace/workspace.ts'
import type { Workspace } from '../../src/workspace/workspace.ts'
import { AgentInstallation, POLICY, TELL } from '../support/agents.ts'
import { builtFixture } from '../support/built-fixture.ts'
import { startProcess, supervisorsOf, until } from '../support/holdfast.ts'
import { Repository } from '../support/repository.ts'
import { WorkStage } from './work-stage.ts'

const DOOMED = builtFixture(new URL('../crash/doomed-workspace.ts', import.meta.url))

const start = (stage: WorkStage, point: string) =>
  startProcess(process.execPath, [DOOMED, stage.database.url, stage.home, point], stage.world.env)

/** The next life of the machine is another. */
const startAgain = ({ folder, opening }: Workspace): void =>
  writeFileSync(treePlace({ folder }, opening!).boot, 'another one')

/** As a power loss leaves a tree that nobody has synced: a file of the last commit is empty. */
function losePower(workspace: Workspace, file = 'a.txt'): void {
  writeFileSync(join(treePlace(workspace, workspace.opening!).tree, file), '')
  startAgain(workspace)
}

async function fails(stage: WorkStage, id: RunId, before: ReturnType<WorkStage['seen']>): Promise<void> {
  const { run, workspace } = await stage.over(id)
  expect([run.state, workspace.state]).toEqual(['failed', 'discarded'])
  expect(run.error).toContain('the machine went down')
  expect(stage.seen()).toEqual(before)
  await stage.assertSound()
}

describe('after a power loss', () => {
  test('what a command left in its tree does not land: it may not be all of it [workspace/all-or-nothing]', async () => {
    const stage = await WorkStage.begin()
    const before = stage.seen()
    const id = await stage.submit('echo new > new.txt')
    await start(stage, 'workspace/worked').ended
    losePower(await stage.workspace(id))
    await start(stage, '-').ended
    await fails(stage, id, before)
  })

  test('a command that had not been started gets its tree anew', async () => {
    const stage = await WorkStage.begin()
    const { files } = stage.seen()
    const id = await stage.submit('echo new > new.txt')
    await start(stage, 'workspace/active').ended
    losePower(await stage.workspace(id))
    await start(stage, '-').ended
    expect((await stage.over(id)).workspace.state).toBe('landed')
    expect(stage.seen().files).toEqual({ ...files, 'new.txt': 'new\n' })
    await stage.assertSound()
  })

  test.each([
    { when: 'before it, as its command went on without it', lost: 'last' },
    { when: 'after it, before it had looked', lost: 'first' },
  ])('it does not land, although its worker let go of the run in order $when', async ({ lost }) => {
    const stage = await WorkStage.begin()
    const before = stage.seen()
    const id = await stage.submit('echo new > new.txt')
    await start(stage, 'workspace/worked').ended
    if (lost === 'first') losePower(await stage.workspace(id))
    const gate = Promise.withResolvers<void>()
    const seen: string[] = []
    const second = await stage.worker((name) => {
      seen.push(name)
      return gate.promise
    })
    const [claim] = await second.recover(id)
    await until('it is about to look', async () => seen.includes('workspace/worked') || undefined)
    await stage.store.apply(handOverRun, refOf(claim!))
    if (lost === 'last') losePower(await stage.workspace(id))
    await (await stage.worker()).recover(id)
    await fails(stage, id, before)
    gate.resolve()
    await until('it is through', async () => second.heldCount === 0 || undefined)
  })

  test('a check that had passed is run again: what is left of its files says nothing of what it did to them', async () => {
    const stage = await WorkStage.begin()
    const id = await stage.submit('echo new > new.txt', { check: { command: 'test -f new.txt' } })
    await start(stage, 'workspace/check-ended').ended
    const { checkMark, folder } = await stage.workspace(id)
    const place = checkPlace({ folder }, checkMark!)
    writeFileSync(join(place.folder, 'a.txt'), '')
    const owner = join(place.command, 'owner.json')
    const known = JSON.parse(readFileSync(owner, 'utf8')) as { identity: object }
    writeFileSync(owner, JSON.stringify({ ...known, identity: { ...known.identity, boot: 'another one' } }))
    await start(stage, '-').ended
    const { run, workspace } = await stage.over(id)
    expect([run.error, run.state, workspace.state]).toEqual([null, 'succeeded', 'landed'])
    expect(workspace.checkMark).not.toBe(checkMark)
    await stage.assertSound()
  })
})

const write = (path: string) => ({ tool: 'files_write', input: { path, content: `${path}\n` } })
const FIRST = [
  { text: '', toolCalls: [write('first.txt'), write('ignored.txt')] },
  { text: '', toolCalls: [{ tool: 'tell', input: { whom: 'everybody' } }] },
]

/** An agent that has written two files, one of which git ignores, and waits for a person. */
async function waiting(...then: readonly object[]) {
  const repo = new Repository({ '.gitignore': 'ignored.txt\n', 'a.txt': 'a\n' })
  const agent = {
    replies: [...FIRST, ...then, { text: 'Done.' }] as never,
    tools: ['files', 'shell', 'tell'],
    workspace: { root: repo.folder, mode: 'transaction' },
  }
  const place = new AgentInstallation({ agents: { coder: agent }, tools: { tell: TELL }, policy: POLICY })
  const daemon = await place.daemon()
  const { runId } = await place.send('coder')
  await place.reaches(runId, 'parked')
  const store = await place.store()
  const workspace = () => store.read(findWorkspace, runId).then((found) => found!)
  const approve = async () => {
    const [approval] = await place.json<readonly [{ readonly id: string }]>(['approvals', 'list'])
    await place.run(['approvals', 'approve', approval.id])
  }
  return { repo, place, daemon, runId, workspace, approve }
}

describe('an agent in another boot of the machine', () => {
  test('goes on in the tree in which it waited, with what git ignores: it was written out', async () => {
    const copy = { tool: 'shell', input: { command: 'cp ignored.txt second.txt' } }
    const { repo, place, daemon, runId, workspace, approve } = await waiting({ text: '', toolCalls: [copy] })
    daemon.kill('SIGKILL')
    await daemon.ended
    const parked = await workspace()
    startAgain(parked)
    await approve()
    await place.daemon()
    expect((await place.ended(runId)).state).toBe('succeeded')
    await until('it has landed', async () => (await workspace()).state === 'landed' || undefined)
    expect([repo.read('first.txt'), repo.read('second.txt')]).toEqual(['first.txt\n', 'ignored.txt\n'])
    expect((await workspace()).opening).toBe(parked.opening)
  })

  test('does not go back to where it waited, if it had done more since; that is what is kept of it', async () => {
    const sleeping = { tool: 'shell', input: { command: 'sleep 600' } }
    const { repo, place, daemon, runId, workspace, approve } = await waiting(
      { text: '', toolCalls: [write('second.txt')] },
      { text: '', toolCalls: [sleeping] },
    )
    const before = repo.state
    const parked = await workspace()
    await approve()
    await until(
      'it is in the middle of the rest',
      async () =>
        (await place.whole(runId)).actions.some(({ tool, state }) => tool === 'shell' && state === 'started') ||
        undefined,
    )
    daemon.kill('SIGKILL')
    await daemon.ended
    for (const { pid } of supervisorsOf(place.home)) process.kill(pid, 'SIGKILL')
    losePower(await workspace(), 'first.txt')
    await place.daemon()
    const ended = await place.ended(runId)
    expect([ended.state, ended.error]).toEqual(['failed', expect.stringContaining('the machine went down')])
    await until('it is discarded', async () => (await workspace()).state === 'discarded' || undefined)
    expect([(await workspace()).work, repo.state]).toEqual([parked.work, before])
    expect(repo.git('show', `refs/holdfast/tx/${runId}:first.txt`)).toBe('first.txt')
  })

  test.each([
    { title: 'goes on where its worker had stopped in order', more: false },
    { title: 'fails if anything was begun after that', more: true },
  ])('$title', async ({ more }) => {
    const stage = await WorkStage.begin()
    const before = stage.seen()
    const workspace = { root: stage.world.project, mode: 'transaction' }
    const coder = { name: 'coder', system: '', tools: new Map(), policy: [], workspace }
    const agent = (ask: () => Promise<unknown>) => new Map([['coder', { ...coder, ask } as unknown as AnyAgent]])
    const id = newRunId(random)
    const ids = { messageId: newMessageId(random), runId: id, threadId: newThreadId(random) }
    await stage.store.apply(sendMessage, { ...ids, agent: 'coder', text: 'go', key: 'go' })
    const asked = Promise.withResolvers<void>()
    const first = await stage.worker(
      undefined,
      agent(() => {
        asked.resolve()
        return new Promise(() => {})
      }),
    )
    void first.perform(id)
    await asked.promise
    const { tree } = treePlace(await stage.workspace(id), (await stage.workspace(id)).opening!)
    // As a tool of its would.
    writeFileSync(join(tree, 'new.txt'), 'new\n')
    await first.drain(0)
    const kept = join((await stage.workspace(id)).folder, 'kept.json')
    expect(JSON.parse(readFileSync(kept, 'utf8'))).toEqual({ tries: 0, opening: 1 })
    if (more) writeFileSync(kept, JSON.stringify({ tries: 1, opening: 1 }))
    startAgain(await stage.workspace(id))
    const reply = { text: 'Done.', toolCalls: [], usage: NO_USAGE, finish: 'stop' }
    await (
      await stage.worker(
        undefined,
        agent(async () => ({ kind: 'replied', reply, spent: NO_USAGE })),
      )
    ).recover(id)
    if (more) return fails(stage, id, before)
    expect((await stage.over(id)).workspace.state).toBe('landed')
    expect(stage.seen().files).toMatchObject({ 'new.txt': 'new\n' })
    await stage.assertSound()
  })
})

test('a note of the boot that cannot be read is no power loss; a tree of an older version gets one', async () => {
  const stage = await WorkStage.begin()
  const place = stage.world.place()
  mkdirSync(place.boot, { recursive: true })
  await expect(isOfThisBoot(place)).rejects.toMatchObject({ code: 'EISDIR' })
  rmSync(place.boot, { recursive: true })
  expect(await isOfThisBoot(place)).toBe(true)
  await noteBoot(place)
  expect([existsSync(place.boot), await isOfThisBoot(place)]).toEqual([true, true])
})
