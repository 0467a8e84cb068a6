import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { temporaryFolder } from '../support/engines.ts'
import { Installation } from '../support/holdfast.ts'
import type { Ended } from '../support/holdfast.ts'
import { typed } from '../server/in-process.ts'
import { CHECK, Person } from './doors.ts'

test('after a discarded run the person reads what happened, why, and how to look at it and bring it back', async () => {
  const person = new Person()
  const before = person.repo.state
  const { code, stderr } = await person.transact('echo 2 > total.txt', '--check', './check.sh')
  expect(code).toBe(1)
  expect(person.repo.state).toBe(before)
  const { runId, state, changed, ...rest } = await person.newest()
  expect({ state, changed, lines: rest['lines'] }).toEqual({
    state: 'discarded',
    changed: ['total.txt'],
    lines: { added: 1, removed: 1 },
  })
  for (const words of [
    'failed: the check exited with status 1',
    'your tree is as it was',
    '| the total is 2',
    `holdfast workspace diff ${runId}`,
    `holdfast workspace keep ${runId}`,
  ])
    expect(stderr).toContain(words)
  expect((await person.json<{ code: string }>('runs', 'show', runId)).code).toBe('validation')
  const diff = await person.type('workspace', 'diff', runId)
  expect(diff.stdout).toContain('-1\n+2')
  const kept = await person.type('workspace', 'keep', runId, '--branch', 'half-done')
  expect([kept.code, kept.stdout]).toEqual([0, `${runId} kept as the branch half-done\n`])
  expect(person.repo.git('show', 'half-done:total.txt')).toBe('2')
  // The branch is all that is new.
  person.repo.git('branch', '-D', 'half-done')
  expect(person.repo.state).toBe(before)
})

test('what succeeded and passed its check lands whole, as one commit, and the person reads which', async () => {
  const person = new Person()
  const { code, stderr } = await person.transact(
    'echo 3 > total.txt; mkdir -p a && echo x > a/b',
    '--check',
    './check.sh',
  )
  expect(code).toBe(0)
  const { state, sha } = await person.newest()
  expect([state, person.repo.head]).toEqual(['landed', sha])
  expect(stderr).toContain(`landed on main as ${sha!.slice(0, 10)}: 2 files (+2 −1), check passed`)
  expect([person.repo.read('total.txt'), person.repo.read('a/b')]).toEqual(['3\n', 'x\n'])
  expect([person.repo.commits, person.repo.git('status', '--porcelain')]).toEqual([2, ''])
})

test('work that cannot land waits with its reason and one command, and lands when that is run', async () => {
  const person = new Person()
  person.repo.write('total.txt', 'mine\n')
  const { code, stderr } = await person.transact('echo 3 > total.txt', '--check', './check.sh')
  expect(code).toBe(0)
  const { runId, state } = await person.newest()
  expect(state).toBe('ready')
  expect(stderr).toContain('1 uncommitted change')
  expect(stderr.split('uncommitted').length).toBe(2)
  expect(stderr).toContain(`holdfast workspace land ${runId}`)
  expect([person.repo.read('total.txt'), person.repo.commits]).toEqual(['mine\n', 1])
  const early = await person.type('workspace', 'land', runId)
  expect([early.code, early.stderr]).toEqual([4, expect.stringContaining('it did not come to that')])
  expect(person.repo.read('total.txt')).toBe('mine\n')
  person.repo.git('checkout', 'total.txt')
  const landed = await person.type('workspace', 'land', runId)
  expect([landed.code, landed.stdout]).toEqual([0, `${runId} landed\n`])
  expect([person.repo.read('total.txt'), person.repo.commits]).toEqual(['3\n', 2])
  expect((await person.type('workspace', 'land', runId)).code).toBe(4)
})

test('what cannot be is refused before anything is stored, with the way to it', async () => {
  const person = new Person()
  const { folder } = person.repo
  const usage: readonly (readonly [readonly string[], string])[] = [
    [['--check', 'true'], '--check is for --workspace'],
    [['--init'], '--init is for --workspace'],
    [['--workspace', folder, '--check', ' '], '--check is empty'],
    [['--workspace', folder, '--check', 'true', '--check-file', 'a'], 'are two checks'],
    [['--workspace', folder, '--check-timeout', '5m'], '--check-timeout is for --check'],
    [['--workspace', folder, '--workspace-copy', '../x'], 'is not a path in the repository'],
    [['--workspace', folder, '--workspace-link', '.git/hooks'], "is inside of the repository's own folder"],
  ]
  for (const [flags, words] of usage) {
    const { code, stderr } = await person.type('run', ...flags, '--', 'true')
    expect([flags, code, stderr]).toEqual([flags, 2, expect.stringContaining(words)])
  }
  const nowhere = temporaryFolder()
  const refused = await person.type('run', '--workspace', nowhere, '--', 'true')
  expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining('--init')])
  expect(await person.json('runs', 'list')).toEqual([])
  const made = [
    'run',
    '--init',
    '--workspace',
    nowhere,
    '--workspace-mode',
    'transaction',
    '--',
    'sh',
    '-c',
    'echo 1 > a',
  ]
  expect((await person.type(...made)).code).toBe(0)
  expect(readFileSync(join(nowhere, 'a'), 'utf8')).toBe('1\n')
})

test('unknown ids are 3, what is refused is 4, and from inside of a run nobody decides', async () => {
  const person = new Person()
  await person.transact('exit 7')
  const { runId } = await person.newest()
  for (const verb of ['show', 'diff', 'land', 'keep', 'discard', 'retry'])
    expect([verb, (await person.type('workspace', verb, 'run_nothing')).code]).toEqual([verb, 3])
  for (const verb of ['land', 'discard', 'retry'])
    expect([verb, (await person.type('workspace', verb, runId)).code]).toEqual([verb, 4])
  const inside = { HOLDFAST_HOME: person.place.home, HOLDFAST_RUN: 'run_1', HOLDFAST_THREAD: 'thr_1' }
  const decided = await typed(['workspace', 'keep', runId], inside)
  expect([decided.code, decided.stderr]).toEqual([4, expect.stringContaining('decisions/inside-run')])
})

test('without a branch there is nothing to land on: a transaction is refused with what to do, and a shadow says that it would be', async () => {
  const person = new Person()
  person.repo.git('checkout', '--quiet', '--detach')
  const refused = await person.transact('echo 3 > total.txt')
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('git switch')])
  expect(person.repo.read('total.txt')).toBe('1\n')
  const watched = await person.shadow('echo 3 > total.txt')
  expect([watched.code, watched.stderr]).toEqual([
    0,
    expect.stringContaining('no branch is checked out, so a transaction would have been refused'),
  ])
})

test('a shadow changes nothing, and its report says the same however often it is made [X5]', async () => {
  const person = new Person()
  const refs = person.repo.git('for-each-ref')
  const failed = await person.shadow('echo 2 > total.txt; echo y > new.txt; exit 9', '--check', './check.sh')
  expect([failed.code, person.repo.read('total.txt')]).toEqual([9, '2\n'])
  expect(failed.stderr).toContain('would have kept 2 files (+2 −1) out of your tree')
  const unchecked = await person.shadow('echo 4 > total.txt', '--check', './check.sh')
  expect([unchecked.code, unchecked.stderr]).toEqual([0, expect.stringContaining('| the total is 4')])
  const good = await person.shadow('echo 3 > total.txt', '--check', './check.sh')
  expect([good.code, good.stderr]).toEqual([0, expect.stringContaining('would have landed 1 file (+1 −1) on main')])
  expect([person.repo.git('for-each-ref'), person.repo.commits]).toEqual([refs, 1])
  const report = await person.json<Record<string, unknown>>('workspace', 'report')
  expect(report).toMatchObject({
    runs: 3,
    wouldLand: { runs: 1, files: 1 },
    wouldDiscard: { runs: 2, files: 3, added: 3, removed: 2 },
    checks: { passed: 1, failed: 1, notReached: 1, without: 0 },
    reasons: [{ runs: 1 }, { runs: 1 }],
  })
  expect(report['advice']).toContain('--workspace-mode transaction')
  expect(await person.json('workspace', 'report')).toEqual(report)
  expect(await person.json('workspace', 'report', '--since', '1h')).toEqual(report)
  expect(await person.json('workspace', 'report', '--since', '2100-01-01')).toMatchObject({ runs: 0 })
  expect((await person.type('workspace', 'report')).stdout).toContain('2 runs with 3 files (+3 −2 lines)')
  expect((await person.type('workspace', 'report', '--since', 'soon')).code).toBe(2)
})

/** How old something is depends on when one asks. */
const ageless = ({ code, stdout, stderr }: Ended) => ({
  code,
  stdout: stdout.replaceAll(/\d+[smhd] ago/g, 'AGE'),
  stderr,
})

test('a daemon elsewhere says the same of workspaces, and does what is asked of it', async () => {
  const person = new Person()
  await person.shadow('echo 2 > total.txt; exit 9')
  person.repo.git('checkout', 'total.txt')
  await person.transact('echo 2 > total.txt', '--check', './check.sh')
  person.repo.write('total.txt', 'mine\n')
  await person.transact('echo 3 > total.txt', '--check', './check.sh')
  const [ready, discarded, shadow] = await person.workspaces()
  const daemon = person.place.start(['up', '--port', '0'])
  await daemon.said('holdfast: window:')
  const { url } = JSON.parse(readFileSync(join(person.place.home, 'daemon.json'), 'utf8')) as { url: string }
  const token = readFileSync(join(person.place.home, 'token'), 'utf8').trim()
  const elsewhere = { HOLDFAST_HOME: new Installation().home, HOLDFAST_URL: url, HOLDFAST_TOKEN: token }
  const looks = [
    ['list'],
    ['list', '--state', 'ready', 'discarded', '--limit', '1'],
    ['list', '--mode', 'shadow'],
    ...[ready, discarded, shadow].flatMap((each) => [
      ['show', each!.runId],
      ['diff', each!.runId],
    ]),
    ['report'],
    ['show', 'run_nothing'],
    ['land', discarded!.runId],
    ['keep', shadow!.runId],
  ].map((args) => ['workspace', ...args])
  const runs = [ready, discarded].flatMap((each) => [
    ['runs', 'show', each!.runId],
    ['runs', 'statement', each!.runId],
  ])
  for (const args of [...looks, ...runs, ['status']]) {
    for (const how of [[], ['--json']]) {
      const [here, there] = [await person.type(...how, ...args), await typed([...how, ...args], elsewhere)]
      expect({ args, ...ageless(there) }).toEqual({ args, ...ageless(here) })
    }
  }
  expect((await typed(['status'], elsewhere)).stdout).toContain('work that waits to be landed or is in quarantine: 1')
  person.repo.git('checkout', 'total.txt')
  const landed = await typed(['workspace', 'land', ready!.runId], elsewhere)
  expect([landed.code, landed.stdout]).toEqual([0, `${ready!.runId} landed\n`])
  expect(person.repo.read('total.txt')).toBe('3\n')
  const kept = await typed(['workspace', 'keep', discarded!.runId, '--branch', 'main'], elsewhere)
  expect([kept.code, kept.stderr]).toEqual([4, expect.stringContaining('there is a branch main already')])
  daemon.kill('SIGTERM')
  await daemon.ended
})

test('a check that is a file runs as it was, and is named in the configuration of an agent too', async () => {
  const person = new Person()
  const { code, stderr } = await person.transact(
    `echo 2 > total.txt; echo '#!/bin/sh' > check.sh`,
    '--check-file',
    'check.sh',
  )
  expect([code, stderr]).toEqual([1, expect.stringContaining('the run changed check.sh')])
  expect([person.repo.read('total.txt'), person.repo.read('check.sh')]).toEqual(['1\n', CHECK])
})
