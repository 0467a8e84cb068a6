import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { listOccurrences } from '../../src/schedule/occurrence.ts'
import { listSchedules, schedulesByName } from '../../src/schedule/schedule.ts'
import { viewOccurrence } from '../../src/schedule/view.ts'
import type { OccurrenceView, ScheduleView } from '../../src/schedule/view.ts'
import { AgentInstallation } from '../support/agents.ts'
import { until } from '../support/holdfast.ts'

const FAR = '2099-01-01T00:00:00Z'

const place = () => new AgentInstallation({ agents: { clerk: { replies: [{ text: 'one' }, { text: 'two' }] } } })

const add = (at: AgentInstallation, ...args: readonly string[]) => at.json<ScheduleView>(['schedule', 'add', ...args])

/** From beside: a process for each look would take longer than what is looked at. */
async function ledger(at: AgentInstallation, name: string): Promise<OccurrenceView[]> {
  const store = await at.store()
  const [schedule] = await store.read(schedulesByName, name)
  if (schedule === undefined) throw new Error(`there is no ${name}`)
  return (await store.read(listOccurrences, { scheduleId: schedule.id, limit: 100 })).map((each) =>
    viewOccurrence(each),
  )
}

/** The newest line of a schedule, once it has come to its end. */
const settled = (at: AgentInstallation, name: string): Promise<OccurrenceView> =>
  until(`${name} is settled`, async () => {
    const [newest] = await ledger(at, name)
    return newest?.settledAt === undefined ? undefined : newest
  })

describe('holdfast schedule', () => {
  test('what is wrong is said with what to write instead, and nothing is stored', async () => {
    const at = place()
    const table: [number, string, string[]][] = [
      [2, 'it does not say when', ['schedule', 'add', 'x', '--', 'true']],
      [2, 'it does not say what', ['schedule', 'add', 'x', '--in', '1h']],
      [2, 'write -- before a command', ['schedule', 'add', 'x', '--in', '1h', 'look again']],
      [2, 'has passed', ['schedule', 'add', 'x', '--at', '2020-01-01T00:00Z', '--', 'true']],
      [2, 'never come', ['schedule', 'add', 'x', '--every', '1h', '--until', '2020-01-01T00:00Z', '--', 'true']],
      [2, '--body is not JSON', ['schedule', 'add', 'x', '--in', '1h', '--webhook', 'http://a', '--body', '{']],
      [2, 'Allowed choices', ['schedule', 'add', 'x', '--in', '1h', '--overlap', 'both', '--', 'true']],
      [
        3,
        'there is no agent "nobody"; there are: clerk',
        ['schedule', 'add', 'x', '--in', '1h', '--agent', 'nobody', 'hi'],
      ],
      [3, 'there is no thread "nowhere"', ['schedule', 'add', 'x', '--in', '1h', '--thread', 'nowhere', 'hi']],
      [3, 'there is no schedule "x"', ['schedule', 'show', 'x']],
      [2, 'belongs to no thread', ['followup', 'add', 'self', '--in', '1h', 'hi']],
      [3, 'there is no schedule "x"', ['followup', 'cancel', 'x']],
    ]
    const wrong: unknown[] = []
    const one = async () => {
      for (let row = table.pop(); row !== undefined; row = table.pop()) {
        const [code, words, args] = row
        const ended = await at.run(args)
        if (ended.code !== code || !ended.stderr.includes(words) || ended.stdout !== '') wrong.push({ args, ended })
      }
    }
    await Promise.all([one(), one(), one()])
    expect(wrong).toEqual([])
    expect(await (await at.store()).read(listSchedules, { limit: 10 })).toEqual([])
  })

  test('a dry run lists ten instants in the zone and in UTC, over a change of the clocks, and stores nothing', async () => {
    const at = place()
    const dry = ['schedule', 'add', 'x', '--cron', '30 2 1 * *', '--tz', 'Europe/Berlin', '--dry-run']
    const { instants } = await at.json<{ instants: { at: string; local: string }[] }>(dry)
    expect(instants).toHaveLength(10)
    for (const { at: utc, local } of instants) expect(new Date(local).toISOString()).toBe(utc)
    // Ten months have both: winter and summer.
    expect(new Set(instants.map(({ local }) => local.slice(10)))).toEqual(
      new Set(['T02:30:00+01:00', 'T02:30:00+02:00']),
    )
    const { stdout } = await at.run(dry)
    expect(stdout.split('\n')).toHaveLength(13)
    expect(stdout).toContain('TIME IN Europe/Berlin')
    const here = await at.run(['schedule', 'add', 'x', '--at', '2098-06-01T09:00', '--dry-run'], { TZ: 'Asia/Tokyo' })
    expect(here.stdout).toContain('09:00:00 +09:00  2098-06-01T00:00:00Z')
    expect(here.stderr).toContain("2098-06-01T09:00 is taken as the time in Asia/Tokyo, the machine's zone")
    expect(await (await at.store()).read(listSchedules, { limit: 10 })).toEqual([])
  })

  test('without a daemon it is stored and said so; one that comes fires a command and an agent, each accounted for', async () => {
    const at = place()
    const { threadId } = await at.json<{ threadId: string }>(['send', '--agent', 'clerk', '--wait', 'hello'])
    const [stored] = await Promise.all([
      at.run(['schedule', 'add', 'cmd', '--in', '1ms', '--timeout', '1m', '--', ...at.append('fired')]),
      add(at, 'ask', '--in', '1ms', '--agent', 'clerk', 'what', 'is', 'new?'),
      add(at, 'tell', '--in', '1ms', '--thread', threadId, 'go on'),
      add(
        at,
        'far',
        '--every',
        '1h',
        '--anchor',
        FAR,
        '--webhook',
        'https://example.invalid/hook',
        '--body',
        '{"a":1}',
      ),
    ])
    expect(stored.stderr).toContain('no daemon is running')
    await at.daemon()
    const done = await Promise.all(['cmd', 'ask', 'tell'].map((name) => settled(at, name)))
    expect(done).toMatchObject([
      { state: 'succeeded', attempts: 1, runId: expect.any(String) as string },
      { state: 'succeeded', attempts: 1 },
      { state: 'succeeded', threadId },
    ])
    expect(at.effects()).toEqual(['fired'])
    const shown = await at.run(['schedule', 'show', 'cmd'])
    expect(shown.stdout).toMatch(/state: +ended[^]*✓ .* succeeded .*run_[^]*nothing comes any more/)
    expect((await at.run(['schedule', 'list'])).stdout).toMatch(
      /^NAME.*\nfar +active .*calls https:\/\/example.invalid\/hook\n$/,
    )
    expect((await at.run(['schedule', 'remove', 'cmd'])).code).toBe(0)
    expect((await at.run(['schedule', 'remove', 'cmd'])).code).toBe(4)
    // The name of one that is over is free; that of a living one is not.
    expect((await add(at, 'cmd', '--at', FAR, '--', 'true')).state).toBe('active')
    const taken = await at.run(['schedule', 'add', 'cmd', '--at', FAR, '--', 'true'])
    expect(taken.code).toBe(4)
    expect(taken.stderr).toContain('"cmd" is active already')
  })

  test('run-now, pause, resume and edit from another process steer a running daemon at once [F4]', async () => {
    const at = place()
    const script = join(at.folder, 'work.sh')
    writeFileSync(script, `while ! test -e "${at.folder}/go"; do sleep 0.05; done`)
    await at.daemon()
    const { nextAt } = await add(at, 'job', '--cron', '0 0 1 1 *', '--tz', 'Asia/Tokyo', '--', '/bin/sh', script)
    const begun = await at.json<OccurrenceView>(['schedule', 'run-now', 'job', '--key', 'a'])
    expect(begun).toMatchObject({ state: 'dispatched', origin: 'run_now' })
    // The same key is the same firing; another one meets the one that is at work.
    expect((await at.json<OccurrenceView>(['schedule', 'run-now', 'job', '--key', 'a'])).id).toBe(begun.id)
    const second = await at.run(['--json', 'schedule', 'run-now', 'job', '--key', 'b'])
    expect(second.code).toBe(4)
    expect(JSON.parse(second.stdout)).toMatchObject({
      state: 'skipped',
      reason: expect.stringMatching(/^overlap: /) as string,
    })
    writeFileSync(join(at.folder, 'go'), '')
    await until('the first is over', async () =>
      (await ledger(at, 'job')).find(({ id, state }) => id === begun.id && state === 'succeeded'),
    )
    expect((await at.json<ScheduleView>(['schedule', 'show', 'job'])).nextAt).toBe(nextAt)

    expect((await at.run(['schedule', 'pause', 'job', '--reason', 'holidays'])).stdout).toBe(
      'job is paused: holidays\n',
    )
    const { rule } = await at.json<ScheduleView>(['schedule', 'edit', 'job', '--cron', '0 0 2 1 *'])
    expect(rule).toEqual({ kind: 'cron', expression: '0 0 2 1 *', zone: 'Asia/Tokyo' })
    await at.json(['schedule', 'edit', 'job', '--every', '1s', '--max-firings', '1', '--', ...at.append('edited')])
    expect((await at.run(['status'])).stdout).toContain('schedule job is paused: holidays')
    const { state } = await at.json<ScheduleView>(['schedule', 'resume', 'job'])
    expect(state).toBe('active')
    await until('the edit fires', () => Promise.resolve(at.effects().length > 0 || undefined))
    expect((await settled(at, 'job')).state).toBe('succeeded')
    expect(at.effects()).toEqual(['edited'])
    const late = [
      ['edit', 'job', '--every', '2s'],
      ['run-now', 'job'],
      ['pause', 'job'],
    ]
    const codes = await Promise.all(late.map(async (args) => (await at.run(['schedule', ...args])).code))
    expect(codes).toEqual([4, 4, 4])
  })

  test('history is kept as long as the configuration says', async () => {
    const agents = { clerk: { replies: [] } }
    const at = new AgentInstallation({ agents, lease: '1s', retention: { occurrences: '1ms' } })
    await at.daemon()
    await add(at, 'job', '--every', '1h', '--', 'true')
    await at.run(['schedule', 'run-now', 'job'])
    await until('it is forgotten', async () => ((await ledger(at, 'job')).length === 0 ? true : undefined))
  })

  test('what fails is in status and doctor, with the command that says why', async () => {
    const at = place()
    await at.daemon()
    await add(at, 'broken', '--every', '1h', '--retries', '0', '--pause-after', '1', '--', 'sh', '-c', 'exit 3')
    const fired = await at.run(['schedule', 'run-now', 'broken', '--wait'])
    expect(fired).toMatchObject({ code: 1, stdout: expect.stringContaining('exited with status 3') as string })
    expect((await at.run(['status'])).stdout).toContain('schedule broken is paused: a failure')
    const { stdout } = await at.run(['doctor'])
    expect(stdout).toContain('schedule: broken failed the last time and is paused')
    expect(stdout).toContain('holdfast schedule resume broken')
  })
})

describe('holdfast followup', () => {
  test('from inside of a run it belongs to that thread, replaces the one before, and is shown with the thread', async () => {
    const at = place()
    const run = await at.json<{ id: string; threadId: string }>(['run', '--thread', 'boss', '--', 'true'])
    const inside = { HOLDFAST_THREAD: run.threadId, HOLDFAST_RUN: run.id }
    const first = await at.run(
      ['--json', 'followup', 'add', 'self', '--in', '1h', 'look', 'again', '--reason', 'CI'],
      inside,
    )
    const view = JSON.parse(first.stdout) as ScheduleView
    expect(view).toMatchObject({
      kind: 'followup',
      ownerThreadId: 'boss',
      ownerRunId: run.id,
      madeBy: run.id,
      target: { threadId: 'boss', text: 'look again' },
      options: { why: 'CI' },
    })
    const second = await at.run(['followup', 'add', 'self', '--in', '2h', 'look later'], inside)
    expect(second.stderr).toContain(`it takes the place of ${view.id}`)
    const other = await at.run(['--json', 'schedule', 'add', 'job', '--every', '1h', '--', 'true'], inside)
    expect(JSON.parse(other.stdout)).toMatchObject({ ownerThreadId: 'boss', ownerRunId: run.id })
    expect((await at.run(['threads', 'show', 'boss'])).stdout).toMatch(/to come:\n.*\n.*tells boss: look later/)
    const list = await at.json<ScheduleView[]>(['followup', 'list', 'boss'])
    expect(list.map(({ target }) => 'text' in target && target.text)).toEqual(['look later'])
    expect((await at.run(['followup', 'cancel', list[0]!.id])).code).toBe(0)
    expect((await at.run(['followup', 'cancel', list[0]!.id])).code).toBe(4)
    expect((await at.run(['followup', 'list'])).stdout).toBe('no follow-ups to come\n')
  })

  test("to a command's thread it waits in the inbox, with what it is and how late; taking it settles it", async () => {
    const at = place()
    await at.run(['run', '--thread', 'boss', '--', 'true'])
    await at.daemon()
    const { id } = await at.json<ScheduleView>(['followup', 'add', 'boss', '--in', '1ms', 'look again'])
    await until('it is there', async () => (await ledger(at, id))[0]?.state === 'dispatched' || undefined)
    expect((await at.run(['inbox', 'boss'])).stdout).toContain('look again')
    expect((await ledger(at, id))[0]).toMatchObject({ state: 'dispatched', threadId: 'boss' })
    await at.run(['inbox', 'drain', 'boss'])
    expect((await settled(at, id)).state).toBe('succeeded')
  })
})
