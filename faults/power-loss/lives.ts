import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { createRuntime, defineFunction } from '../../src/index.ts'
import type { FunctionRun, Runtime } from '../../src/index.ts'
import type { RunView } from '../../src/runs/view.ts'
import { claimRun, isOver, wordsOf } from './claims.ts'
import { LANDINGS } from './landings.ts'
import type { Place } from './place.ts'

/*
 * What happens before the power fails. Each one acknowledges something in a way of its own, and says so when it has been
 * told: a claim.
 */
export const LIVES: Readonly<Record<string, (place: Place) => Promise<void>>> = {
  calls,
  commands,
  hooks,
  backups,
  agents,
  ...LANDINGS,
}

/** Functions with steps, from a program of somebody's; the log is written back and begun anew in between. */
async function calls(place: Place): Promise<void> {
  const { dice, ledger } = place
  const order = defineFunction('adder', async (run: FunctionRun<{ readonly note: string }>) => {
    await run.step('pay', () => appendFileSync(ledger, `step ${run.id} pay\n`))
    await run.step('look', () => run.input.note.length, { effect: 'read' })
    return run.step('ship', () => appendFileSync(ledger, `step ${run.id} ship\n`))
  })
  const open = () => createRuntime({ home: place.home, agents: [order], warn: () => {} })
  for (let life = 0; life < 2; life += 1) {
    const runtime = await open()
    await runtime.start({ calls: 4 })
    const writer = new DatabaseSync(join(place.home, 'holdfast.db'))
    const checkpoint = () => void writer.exec(`pragma wal_checkpoint(${dice.pick(['passive', 'restart', 'truncate'])})`)
    for (let round = 0; round < 6; round += 1) {
      if (dice.chance(0.5)) checkpoint()
      await Promise.all(
        Array.from({ length: 1 + dice.below(3) }, (_, each) => oneCall(place, runtime, `${life}-${round}-${each}`)),
      )
    }
    writer.close()
    await runtime.close()
  }
}

async function oneCall(place: Place, runtime: Runtime, key: string): Promise<void> {
  const note = 'x'.repeat(place.dice.pick([10, 900, 9_000]))
  const call = await runtime.call({ function: 'adder', key, input: { note } })
  place.claim(`call ${key} is stored`, { rows: `select 1 from runs where id = '${call.runId}'` })
  await call.result()
  place.claim(`call ${key} has succeeded`, {
    rows: `select 1 from runs where id = '${call.runId}' and state = 'succeeded'`,
  })
}

/** Commands in front of somebody, commands for the daemon, one with more output than a record holds, one that is cancelled. */
async function commands(place: Place): Promise<void> {
  claimRun(place, await place.holdfast('--json', 'run', '--', ...place.append('in-front')))
  const bytes = 300_000 + place.dice.below(100_000)
  const much = [process.execPath, '-e', `process.stdout.write('y'.repeat(${bytes}))`]
  claimOutput(place, claimRun(place, await place.holdfast('--json', 'run', '--', ...much)), bytes)
  const waiting: RunView[] = []
  for (const entry of ['behind', 'behind-too'])
    waiting.push(claimRun(place, await place.holdfast('--json', 'run', '--detach', '--', ...place.append(entry))))
  const endless = claimRun(place, await place.holdfast('--json', 'run', '--detach', '--', 'sleep', '600'))
  const added = await place.holdfast('--json', 'schedule', 'add', 'nightly', '--cron', '0 3 * * *', '--', 'true')
  place.claim('a schedule is stored', { rows: `select 1 from schedules where name = 'nightly'` }, wordsOf(added))
  const daemon = await place.up()
  for (const { id } of waiting) await untilEnded(place, id)
  const cancelled = await place.holdfast('--json', 'runs', 'cancel', endless.id)
  const rows = `select 1 from runs where id = '${endless.id}' and cancel_requested_at is not null`
  place.claim('a cancel is stored', { rows }, wordsOf(cancelled))
  await untilEnded(place, endless.id)
  await daemon.stop()
}

/** What a client's hooks tell: to the store, into the spool where there is no store, and from there to the store. */
async function hooks(place: Place): Promise<void> {
  const nowhere = { HOLDFAST_STORE: `sqlite:${join(place.root, 'nowhere', 'holdfast.db')}` }
  let number = 0
  // Something secret-shaped, so that the key is there before the spool is.
  if (place.dice.chance(0.5)) await place.holdfast('run', '--detach', '--', 'echo', `ghp_${'a1B2c3'.repeat(6)}`)
  for (let round = 0; round < 3; round += 1) {
    for (let time = place.dice.below(3); time >= 0; time -= 1) await tell(place, `spooled-${(number += 1)}`, nowhere)
    await tell(place, `heard-${(number += 1)}`)
  }
}

async function tell(place: Place, session: string, env: Readonly<Record<string, string>> = {}): Promise<void> {
  const says = { session_id: session, hook_event_name: 'SessionStart', source: 'startup', cwd: '/' }
  const { code, stderr } = await place.hook({ ...says, transcript_path: '/nowhere' }, env)
  if (code !== 0 && !stderr.includes('is kept in')) throw new Error(`a hook was not heard: ${stderr}`)
  place.claim(`session ${session} is told of`, { rows: `select 1 from sessions where session_id = '${session}'` })
}

/** Copies of a database in use, each put back. */
async function backups(place: Place): Promise<void> {
  for (let round = 0; round < 2; round += 1) {
    claimRun(place, await place.holdfast('--json', 'run', '--', ...place.append(`round-${round}`)))
    const name = `copies/${round}.db`
    const made = await place.holdfast('--json', 'backup', join(place.root, name))
    const rows = `select 1 from runs where request like '%round-${round}%'`
    place.claim(`backup ${round} is made`, { backup: { path: name, rows } }, wordsOf(made))
    const restored = await place.holdfast('--json', 'restore', join(place.root, name))
    place.claim(`backup ${round} is restored`, { rows }, wordsOf(restored))
    const token = await place.holdfast('--json', 'token', 'create', '--scope', 'read', '--name', `reader-${round}`)
    place.claim(
      `token ${round} is stored`,
      { rows: `select 1 from tokens where name = 'reader-${round}'` },
      wordsOf(token),
    )
  }
}

/** An agent that writes, once on its own and once after a person's yes. */
async function agents(place: Place): Promise<void> {
  const toolCalls = ['milk', 'bread'].map((entry) => ({ tool: 'ledger', input: { entry } }))
  const input = { type: 'object', properties: { entry: { type: 'string' } }, required: ['entry'] }
  const ledger = { effect: 'write', description: 'Writes a line', input, command: place.ledgerTool }
  place.configure({
    agents: { clerk: { model: place.script({ replies: [{ toolCalls }, { text: 'done' }] }), tools: ['ledger'] } },
    tools: { ledger },
  })
  const daemon = await place.up()
  for (let round = 0; round < 2; round += 1) {
    const sent = await place.holdfast(
      '--json',
      'send',
      '--agent',
      'clerk',
      '--key',
      `order-${round}`,
      'Breakfast, please.',
    )
    const rows = `select 1 from messages where key = 'order-${round}'`
    place.claim(`message ${round} is stored`, { rows }, wordsOf(sent))
    const { runId } = JSON.parse(sent.stdout) as { readonly runId: string }
    await approveUntilEnded(place, runId)
  }
  await daemon.stop()
}

async function approveUntilEnded(place: Place, runId: string): Promise<void> {
  for (;;) {
    const { state } = JSON.parse((await place.holdfast('--json', 'runs', 'show', runId)).stdout) as RunView
    if (isOver(state)) return
    const listed = await place.holdfast('--json', 'approvals', 'list')
    for (const { id } of JSON.parse(listed.stdout) as readonly { readonly id: string }[]) {
      const approved = await place.holdfast('--json', 'approvals', 'approve', id)
      const rows = `select 1 from approvals where id = '${id}' and state in ('approved', 'consumed')`
      if (approved.code === 0) place.claim(`${id} is approved`, { rows }, wordsOf(approved))
    }
  }
}

async function untilEnded(place: Place, id: string): Promise<void> {
  for (;;) {
    const shown = await place.holdfast('--json', 'runs', 'show', id)
    if (!isOver((JSON.parse(shown.stdout) as RunView).state)) continue
    claimRun(place, shown)
    return
  }
}

/** What a record does not hold is in a file that stays. */
function claimOutput(place: Place, run: RunView, bytes: number): void {
  place.claim(`the output of ${run.id} is kept`, { output: { run: run.id, bytes } }, `"totalBytes": ${bytes}`)
}
