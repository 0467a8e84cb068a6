import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { askedMatters } from '../../src/actions/desk.ts'
import { actionsOfRun } from '../../src/actions/action.ts'
import { findApproval } from '../../src/actions/approval.ts'
import { listRuns } from '../../src/runs/run.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { hasTmux, makeConductor, openTerminal } from './conductor.ts'
import type { Conductor } from './conductor.ts'
import type { Asked, Reply } from './model-server.ts'
import { realClient } from './support.ts'

const CLAUDE = realClient('claude')

/** A model that wants one line appended, and then says what became of it. */
const appending =
  (ledger: () => string) =>
  ({ text }: Asked): Reply =>
    text.includes('tool_result') ? { text: 'I have my answer.' } : { bash: `echo paid >> ${ledger()}` }

const linesOf = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [])

async function theMatter({ store }: Conductor) {
  return until('a person is asked', async () => (await store.read(askedMatters, 5))[0])
}

async function makeOne() {
  let ledger = ''
  const conductor = await makeConductor(
    appending(() => ledger),
    { permissions: true },
  )
  ledger = join(conductor.stage.folder, 'ledger')
  await conductor.installation.up()
  return { conductor, ledger }
}

test.skipIf(CLAUDE === undefined)(
  'a real Claude Code that may not append ends its process; the yes of a person, days later too, lets exactly that call happen once [approvals/bound] [actions/once]',
  async () => {
    const { conductor, ledger } = await makeOne()
    const { installation, store, print } = conductor
    const deferred = await print('pay the rent')
    expect(deferred).toMatchObject({ stop_reason: 'tool_deferred' })
    expect(linesOf(ledger)).toEqual([])
    const { approval, run, action } = await theMatter(conductor)
    expect(run).toMatchObject({ state: 'parked', parkedFor: 'a decision', agent: 'claude' })
    expect(JSON.parse(approval.shown)).toMatchObject({ tool: 'Bash', input: { command: `echo paid >> ${ledger}` } })
    const session = deferred.session_id ?? ''
    // Nobody has said anything yet: it asks once more, and that is the same question.
    expect(await print('--resume', session)).toMatchObject({ stop_reason: 'tool_deferred' })
    expect((await theMatter(conductor)).approval.id).toBe(approval.id)
    const approved = await installation.run(['approvals', 'approve', approval.id])
    expect(approved).toMatchObject({ code: 0 })
    expect(approved.stderr).toContain(`claude -p --resume ${session}`)
    expect(await print('--resume', session)).toMatchObject({ result: 'I have my answer.' })
    expect(linesOf(ledger)).toEqual(['paid'])
    expect(await store.read(findApproval, approval.id)).toMatchObject({ state: 'consumed', decidedVia: 'command line' })
    await until('the turn has ended', async () => {
      const [turn] = await store.read(listRuns, { limit: 5 })
      return turn?.state === 'succeeded' ? true : undefined
    })
    const runs = await store.read(listRuns, { limit: 5 })
    expect(runs).toMatchObject([{ id: run.id, state: 'succeeded' }])
    expect(await store.read(actionsOfRun, run.id)).toMatchObject([{ id: action.id, state: 'done', tries: 1 }])
    await assertInvariants(store)
  },
)

test.skipIf(CLAUDE === undefined)(
  'a real Claude Code whose call was denied is told so by its resume, and nothing happens',
  async () => {
    const { conductor, ledger } = await makeOne()
    const { installation, store, print, model } = conductor
    const { session_id: session } = await print('pay the rent')
    const { approval, run } = await theMatter(conductor)
    await installation.run(['approvals', 'deny', approval.id, '--note', 'not before Monday'])
    await print('--resume', session ?? '')
    expect(model.asked.at(-1)!.text).toContain('a person said no: not before Monday')
    expect(linesOf(ledger)).toEqual([])
    expect(await store.read(actionsOfRun, run.id)).toMatchObject([{ state: 'denied' }])
    await assertInvariants(store)
  },
)

test.skipIf(CLAUDE === undefined).each([
  ['a command', { command: [CLAUDE, '-p', '{prompt}', '--allowedTools', 'Bash'] }],
  ['a client', { client: 'claude', program: CLAUDE, args: ['--allowedTools', 'Bash'] }],
])(
  'a real Claude Code that is an agent of ours, %s, is resumed by the daemon once somebody has said yes',
  async (_, written) => {
    let ledger = ''
    const conductor = await makeConductor(
      appending(() => ledger),
      { permissions: true },
    )
    const { installation, stage, store } = conductor
    ledger = join(stage.folder, 'ledger')
    const coder = { ...written, folder: stage.folder, env: Object.keys(stage.env) }
    writeFileSync(installation.configuration, JSON.stringify({ agents: { coder } }))
    await installation.start(['up'], { ...stage.env }).said('holdfast: up:')
    expect(await installation.run(['send', '--agent', 'coder', 'pay the rent'])).toMatchObject({ code: 0 })
    const { approval } = await theMatter(conductor)
    await until('its client has ended', async () => {
      const runs = await store.read(listRuns, { limit: 5 })
      return runs.some(({ state }) => state === 'parked') && runs.every(({ state }) => state !== 'running')
        ? true
        : undefined
    })
    expect(await installation.run(['approvals', 'approve', approval.id])).toMatchObject({ code: 0 })
    await until('everything has ended', async () => {
      const runs = await store.read(listRuns, { limit: 5 })
      return runs.length === 3 && runs.every(({ state }) => state === 'succeeded') ? true : undefined
    })
    expect(linesOf(ledger)).toEqual(['paid'])
    const turns = (await store.read(listRuns, { limit: 5 })).filter(({ agent }) => agent === 'coder')
    const words = 'client' in written ? ['I have my answer.', 'waits for a person to decide about Bash'] : []
    // The call is an action of the turn that the hooks saw, and of no other.
    for (const { id } of turns) expect(await store.read(actionsOfRun, id)).toEqual([])
    expect(words.filter((each, index) => !JSON.stringify(turns[index]?.result).includes(each))).toEqual([])
    await assertInvariants(store)
  },
)

test.skipIf(CLAUDE === undefined || !hasTmux())(
  'the open dialog of a real Claude Code is answered from elsewhere; one that is answered there is withdrawn',
  async () => {
    const { conductor, ledger } = await makeOne()
    const { installation, store } = conductor
    const terminal = await openTerminal(conductor)
    await terminal.shows('❯')
    await terminal.type('pay the rent')
    const { approval } = await theMatter(conductor)
    await terminal.shows('Do you want to proceed?')
    expect(await installation.run(['approvals', 'approve', approval.id])).toMatchObject({ code: 0 })
    await terminal.shows('I have my answer.')
    expect(linesOf(ledger)).toEqual(['paid'])
    expect(await store.read(findApproval, approval.id)).toMatchObject({ state: 'consumed' })
    await terminal.type('/clear')
    await until('the screen is empty', async () => ((await terminal.screen()).includes('answer.') ? undefined : true))
    await terminal.type('pay it again')
    const second = await theMatter(conductor)
    await terminal.shows('Do you want to proceed?')
    // A dialog that has just come up does not listen to keys at once: a person presses again.
    await until('the dialog is answered', async () => {
      if (!(await terminal.screen()).includes('Do you want to proceed?')) return true
      await terminal.press('Enter')
      return undefined
    })
    await terminal.shows('I have my answer.')
    expect(linesOf(ledger)).toEqual(['paid', 'paid'])
    const withdrawn = await until('it is withdrawn', async () => {
      const now = await store.read(findApproval, second.approval.id)
      return now?.state === 'pending' ? undefined : now
    })
    expect(withdrawn).toMatchObject({ state: 'withdrawn', decidedBy: null })
    expect(await installation.run(['approvals', 'approve', second.approval.id])).toMatchObject({ code: 4 })
    await assertInvariants(store)
  },
)
