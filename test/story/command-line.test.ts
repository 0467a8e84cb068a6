import { chmodSync, cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import type { RunView } from '../../src/runs/view.ts'
import { temporaryFolder } from '../support/engines.ts'
import { Installation, PROGRAM, processesWith, startProcess, until } from '../support/holdfast.ts'
import { smallDisk } from '../support/small-disk.ts'

/** Each is a process. */
const MANY = process.env['HOLDFAST_DEEP'] === undefined ? 16 : 50

describe('holdfast run', () => {
  test('passes output through and mirrors the exit code', async () => {
    const place = new Installation()
    expect(await place.run(['run', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7'])).toEqual({
      code: 7,
      stdout: 'out\n',
      stderr: 'err\n',
    })
    expect((await place.run(['run', '--', 'true'])).code).toBe(0)
    expect((await place.run(['run', '--', 'sh', '-c', 'kill -SEGV $$'])).code).toBe(139)
  })

  test('with --json prints one value, the run, and the command speaks on standard error', async () => {
    const place = new Installation()
    const { stdout, stderr } = await place.run(['run', '--json', '--', 'echo', 'hello'])
    const run = JSON.parse(stdout) as RunView
    expect(run).toMatchObject({ state: 'succeeded', agent: 'command', attempt: 1, result: { exitCode: 0 } })
    expect(run.usage).toEqual({ inputTokens: 0, outputTokens: 0, costUsd: 0 })
    expect(stderr).toBe('hello\n')
    expect(new Date(run.createdAt).toISOString()).toBe(run.createdAt)
  })

  test('a command that never returns ends by timeout and says so [R1]', async () => {
    const place = new Installation()
    const { code, stdout } = await place.run([
      'run',
      '--json',
      '--timeout',
      '1s',
      '--',
      'sh',
      '-c',
      'echo partial; sleep 300',
    ])
    const run = JSON.parse(stdout) as RunView
    expect(run).toMatchObject({
      state: 'failed',
      code: 'timeout',
      error: 'timed out after 1s',
      result: { stdout: { head: 'partial\n' } },
    })
    expect(code).not.toBe(0)
    expect(processesWith(`HOLDFAST_RUN=${run.id}`)).toEqual([])
  })

  test('cancelled although it exited 0 is exit code 4, and never a success [T2] [runs/cancel-is-final]', async () => {
    const place = new Installation()
    const front = place.start([
      'run',
      '--json',
      '--',
      'sh',
      '-c',
      'trap "exit 0" TERM; echo ready; while :; do sleep 0.05; done',
    ])
    await front.said('ready')
    const [{ id }] = await place.json<[RunView]>(['runs', 'list'])
    expect((await place.run(['runs', 'cancel', id, '--reason', 'changed my mind'])).code).toBe(0)
    const { code, stdout } = await front.ended
    expect(code).toBe(4)
    expect(JSON.parse(stdout)).toMatchObject({ id, state: 'cancelled' })
    const events = await place.json<{ type: string; data: { state?: string } }[]>(['runs', 'events', id])
    expect(events.filter(({ type }) => type === 'run.finished')).toMatchObject([{ data: { state: 'cancelled' } }])
  })

  test('Ctrl-C cancels, and every process is dead when it returns [control/stop-means-stopped]', async () => {
    const place = new Installation()
    const front = place.start(['run', '--', 'sh', '-c', '(setsid sleep 300 &); echo ready; sleep 300 | cat'])
    await front.said('ready')
    const [{ id }] = await place.json<[RunView]>(['runs', 'list'])
    front.kill('SIGINT')
    expect((await front.ended).code).not.toBe(0)
    expect((await place.show(id)).state).toBe('cancelled')
    expect(processesWith(`HOLDFAST_RUN=${id}`)).toEqual([])
  })

  test('gives the command its thread and run, and makes it the parent of what it starts', async () => {
    const place = new Installation()
    const inner = `"$HOLDFAST" run --json -- sh -c 'echo "$HOLDFAST_THREAD $HOLDFAST_RUN"'`
    const env = { HOLDFAST: PROGRAM }
    const outer = place.start(['run', '--thread', 'conductor', '--', 'sh', '-c', inner], env)
    const { stdout, code } = await outer.ended
    expect(code).toBe(0)
    const child = JSON.parse(stdout) as RunView
    expect(child.parentThreadId).toBe('conductor')
    expect((child.result as { stdout: { head: string } }).stdout.head).toBe(`${child.threadId} ${child.id}\n`)
  })

  test('a name means the thread of exactly that name, not one that begins with it', async () => {
    const place = new Installation()
    for (const name of ['build-1', 'build-2', 'build', 'b']) {
      const run = await place.json<RunView>(['run', '--thread', name, '--', 'true'])
      expect(run.threadId).toBe(name)
    }
    const { threadId } = await place.json<RunView>(['run', '--', 'true'])
    const again = await place.json<RunView>(['run', '--thread', threadId.slice(0, -2), '--', 'true'])
    expect(again.threadId).toBe(threadId)
  })

  test('reads what is piped into it', async () => {
    const place = new Installation()
    const piped = startProcess('sh', ['-c', `printf 'a\\nb\\n' | ${PROGRAM} run -- wc -l`], {
      HOLDFAST_HOME: place.home,
    })
    expect((await piped.ended).stdout.trim()).toBe('2')
  })

  test('the same key is the same run, also for many at once; another request with it is refused', async () => {
    const place = new Installation()
    const submit = () => place.run(['--json', 'run', '--detach', '--key', 'nightly', '--', 'true'])
    const answers = await Promise.all(Array.from({ length: MANY }, submit))
    const runs = answers.map(({ stdout }) => JSON.parse(stdout) as RunView)
    expect(new Set(runs.map(({ id }) => id)).size).toBe(1)
    expect(new Set(answers.map(({ stdout }) => stdout)).size).toBe(1)
    expect(answers.every(({ code }) => code === 0)).toBe(true)
    const conflict = await place.run(['run', '--detach', '--key', 'nightly', '--', 'false'])
    expect(conflict).toMatchObject({ code: 4, stdout: '' })
    expect(conflict.stderr).toContain('runs/key-conflict')
  })

  test('a reader that goes away cancels the command instead of leaving it to run for ever', async () => {
    const place = new Installation()
    const piped = startProcess('sh', ['-c', `${PROGRAM} run -- yes | head -n 1`], {
      HOLDFAST_HOME: place.home,
    })
    expect((await piped.ended).stdout).toBe('y\n')
    const [run] = await until('it ended', async () => {
      const runs = await place.json<RunView[]>(['runs', 'list', '--state', 'cancelled'])
      return runs.length === 0 ? undefined : runs
    })
    expect(processesWith(`HOLDFAST_RUN=${run!.id}`)).toEqual([])
  })
})

describe('what a command says', () => {
  const shell = (place: Installation, line: string) =>
    startProcess('sh', ['-c', line], {
      HOLDFAST_HOME: place.home,
      HOLDFAST: PROGRAM,
    })

  test('a reader who has seen enough ends what would go on for ever, without a word', async () => {
    const place = new Installation()
    await place.run(['run', '--', 'true'])
    const piped = shell(place, `"$HOLDFAST" runs events --follow | head -n 1`)
    let ended: Awaited<typeof piped.ended> | undefined
    void piped.ended.then((how) => (ended = how))
    // That the reader has gone shows when there is something to be said again.
    await until('it ended', async () => ended ?? (await place.run(['run', '--', 'true']), undefined))
    expect(ended).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^ +1 .*thread.created/) as string,
    })
  })

  test('a folder that is gone is called that', async () => {
    const gone = temporaryFolder()
    const ended = await shell(new Installation(), `cd '${gone}' && rmdir '${gone}' && "$HOLDFAST" run -- true`).ended
    expect(ended.stderr).toContain('usage/no-working-folder')
    expect(ended.code).toBe(2)
  })

  test('a result that could not be written is a failure', async ({ skip }) => {
    if (!existsSync('/dev/full')) return skip()
    const ended = await shell(new Installation(), `"$HOLDFAST" runs list --json > /dev/full`).ended
    expect(ended.stderr).toContain('output/not-written')
    expect(ended.stderr).not.toMatch(/^\s+at /m)
    expect(ended.code).toBe(1)
  })
})

describe('bad input', () => {
  const cases: [title: string, args: string[], code: number, says: string][] = [
    ['an unknown run', ['runs', 'show', 'run_nope'], 3, 'there is no run "run_nope"'],
    ['an unknown thread', ['threads', 'show', 'nobody'], 3, 'there is no thread "nobody"'],
    ['cancelling an unknown run', ['runs', 'cancel', 'nope'], 3, 'not-found/run'],
    ['a malformed duration', ['run', '--timeout', '5 parsecs', '--', 'true'], 2, 'is not a duration'],
    ['a duration of nothing', ['run', '--timeout', '0s', '--', 'true'], 2, 'is not a duration'],
    ['an unknown store', ['--store', 'mysql://u:secret@h/db', 'status'], 2, 'is not a store that this Holdfast knows'],
    ['an unknown command', ['frobnicate'], 2, 'unknown command'],
    ['an unknown option', ['status', '--frobnicate'], 2, 'unknown option'],
    ['no command to run', ['run'], 2, "missing required argument 'command'"],
    ['a command that is not there', ['run', '--', 'no-such-program'], 127, 'not found: no-such-program'],
    ['a parent that is not there', ['run', '--parent', 'nobody', '--', 'true'], 3, 'there is no thread "nobody"'],
    ['self outside of a run', ['run', '--parent', 'self', '--', 'true'], 2, 'there is no "self"'],
    ['a thread id that is not there', ['run', '--thread', 'thr_0', '--', 'true'], 3, 'there is no thread "thr_0"'],
    ['a name with spaces', ['run', '--thread', 'my tests', '--', 'true'], 2, 'cannot be the name of a thread'],
    ['self for a child', ['run', '--thread', 'self', '--', 'true'], 2, '--parent self'],
    ['an event number that is none', ['runs', 'events', '--after', 'soon'], 2, 'a sequence number is wanted'],
    ['a file where a folder should be', ['init', '/dev/null/sub'], 1, 'a file is in the way'],
    ['a state that is none', ['runs', 'list', '--state', 'asleep'], 2, 'Allowed choices'],
    ['no workers', ['up', '--workers', '0'], 2, '--workers wants'],
    ['a configuration that is not there', ['--config', '/nowhere.json', 'status'], 2, 'cannot be read'],
  ]
  test.each(cases)('%s: a sentence that says what to do, and the right exit code', async (_, args, code, says) => {
    const ended = await new Installation().run(args)
    expect(ended.stderr).toContain(says)
    expect(ended.code).toBe(code)
    expect(ended.stderr).not.toMatch(/^\s+at /m)
    expect(ended.stderr).not.toContain('secret')
    expect(ended.stdout).toBe('')
  })

  test('an error with --json is one JSON value with its code', async () => {
    const { stdout, code } = await new Installation().run(['--json', 'runs', 'show', 'nope'])
    expect(code).toBe(3)
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'not-found/run' } })
  })

  test('so is what the command line itself does not understand', async () => {
    const { stdout, stderr, code } = await new Installation().run(['--json', 'status', '--frobnicate'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('unknown option')])
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'usage/arguments' } })
  })

  test('a configuration with an unknown setting names it and what is known', async () => {
    const config = join(temporaryFolder(), 'holdfast.config.json')
    writeFileSync(config, '{ "lease": "15s", "capacity": { "totl": 3 } }')
    const { code, stderr } = await new Installation().run(['--config', config, 'status'])
    expect(code).toBe(2)
    expect(stderr).toContain('"capacity.totl" is not a setting; did you mean "total"?')
  })

  test('a home folder that cannot be written', async () => {
    const folder = temporaryFolder()
    chmodSync(folder, 0o755)
    const home = join(folder, 'locked')
    mkdirSync(home, { mode: 0o555 })
    const asNobody = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--clear-groups', '--'] : []
    const command = [...asNobody, join(process.cwd(), 'bin', 'holdfast'), 'status']
    const { code, stderr } = await startProcess(command[0]!, command.slice(1), { HOLDFAST_HOME: home }).ended
    expect(stderr).toMatch(/cannot be written/)
    expect(stderr).not.toMatch(/^\s+at /m)
    expect(code).toBe(1)
  })

  test('a full disk: refused with a remedy, and what was acknowledged before is still there', async ({ skip }) => {
    const disk = smallDisk('2m')
    if (disk === undefined) return skip('no file system can be mounted here')
    const place = new Installation({ store: `sqlite:${disk.folder}/holdfast.db` })
    const kept = await place.detach('true')
    disk.fill()
    const refused = await place.run(['run', '--detach', '--', 'true', 'x'.repeat(100_000)])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('store/full')
    disk.free()
    expect((await place.show(kept)).state).toBe('queued')
    expect(await place.json<RunView[]>(['runs', 'list'])).toHaveLength(1)
    expect(await place.detach('true')).not.toBe(kept)
  })

  test.each(process.env['HOLDFAST_DEEP'] === undefined ? [22, 25, 30] : [22, 24, 25, 26, 27, 30])(
    'no more than %i open files: a sentence, not a stack trace, and nothing half done',
    async (files) => {
      const place = new Installation()
      await place.run(['status'])
      const command = `ulimit -n ${files}; exec ${process.cwd()}/bin/holdfast run -- ${place.append('never').join(' ')}`
      const { code, stderr } = await startProcess('sh', ['-c', command], { HOLDFAST_HOME: place.home }).ended
      expect(code).not.toBe(0)
      expect(stderr).toMatch(/open files|file handles/)
      expect(stderr).not.toMatch(/^\s+at /m)
      const runs = await place.json<RunView[]>(['runs', 'list'])
      expect(runs.every(({ state }) => state === 'failed')).toBe(true)
      expect(place.effects()).toEqual([])
    },
  )

  test('a database restored from an older backup is noticed, and goes on only if a person says so', async () => {
    const place = new Installation()
    await place.detach('true')
    cpSync(place.home, `${place.home}-backup`, { recursive: true })
    const lost = await place.detach('true')
    for (const name of ['holdfast.db', 'holdfast.db-wal', 'holdfast.db-shm'])
      rmSync(join(place.home, name), { force: true })
    cpSync(`${place.home}-backup/holdfast.db`, `${place.home}/holdfast.db`)
    const refused = await place.run(['status'])
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain('restored from an older backup')
    expect((await place.run(['--accept-restore', 'runs', 'show', lost])).code).toBe(3)
    expect((await place.run(['status'])).code).toBe(0)
  })

  test('two daemons on one home folder: the second is refused and the first goes on', async () => {
    const place = new Installation()
    const first = await place.up()
    const second = await place.run(['up'])
    expect(second.code).toBe(4)
    expect(second.stderr).toContain(`a daemon with process number ${first.pid} serves`)
    const id = await place.detach('true')
    await place.reaches(id, 'succeeded')
  })
})

describe('looking', () => {
  test('status, doctor, threads and events speak of what is there', async () => {
    const place = new Installation()
    await place.run(['run', '--thread', 'nightly', '--', 'true'])
    expect(await place.json(['status'])).toMatchObject({ engine: 'sqlite', runs: { succeeded: 1 }, daemons: [] })
    expect(await place.json(['threads', 'show', 'night'])).toMatchObject({
      id: 'nightly',
      runs: [{ state: 'succeeded' }],
    })
    const doctor = await place.json<{ healthy: boolean; findings: { check: string }[] }>(['doctor'])
    expect(doctor.healthy).toBe(true)
    expect(doctor.findings.map(({ check }) => check)).toContain('containment')
    const events = await place.json<{ seq: number; type: string }[]>(['runs', 'events'])
    expect(events.map(({ type }) => type)).toEqual(['thread.created', 'run.queued', 'run.started', 'run.finished'])
    expect(await place.json(['runs', 'events', '--after', String(events[2]!.seq)])).toHaveLength(1)
  })

  test('output of a command cannot steer the terminal of whoever looks at it', async () => {
    const place = new Installation()
    await place.run(['run', '--', 'printf', '\\033[2J\\033]0;owned\\007\\342\\200\\256'])
    const [{ id }] = await place.json<[RunView]>(['runs', 'list'])
    const { stdout } = await place.run(['runs', 'show', id])
    for (const character of ['\u{1b}', '\u{7}', '\u{202e}']) expect(stdout).not.toContain(character)
    expect(stdout).toContain('\\u{1b}[2J')
  })
})
