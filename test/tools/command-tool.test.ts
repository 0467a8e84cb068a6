import { readFileSync, statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { errorOf, freshFolder, Ledger, newContext, processesWith, script, toolOf, until, within } from './support.ts'

test('the input comes on standard input, the key and the run in the environment, secrets do not', async () => {
  const context = newContext()
  const tool = toolOf({ command: script('cat; echo; env') })
  const outcome = await tool.perform({ b: 2, a: 'é "x"' }, context)
  expect(outcome.kind).toBe('done')
  const lines = String((outcome as { result: unknown }).result).split('\n')
  expect(JSON.parse(lines[0] ?? '')).toEqual({ a: 'é "x"', b: 2 })
  expect(lines).toContain(`HOLDFAST_ACTION_KEY=${context.key}`)
  expect(lines).toContain('HOLDFAST_THREAD=thr_1')
  expect(lines).toContain('HOLDFAST_RUN=run_1')
  expect(lines.join()).not.toContain('planted')
  expect(statSync(`${context.folder}/input.json`).mode & 0o777).toBe(0o600)
})

test('a large input arrives whole', async () => {
  const tool = toolOf({ command: script('wc -c') })
  expect(await tool.perform({ text: 'x'.repeat(250_000) }, newContext())).toEqual({ kind: 'done', result: 250_011 })
})

test.each([
  ['echo \'{"a":1}\'', { kind: 'done', result: { a: 1 } }],
  ['echo null', { kind: 'done', result: null }],
  ['echo plain text', { kind: 'done', result: 'plain text\n' }],
  ['echo \'"\\ud800"\'', { kind: 'done', result: '"\\ud800"\n' }],
  [':', { kind: 'done', result: '' }],
  ['echo why >&2; exit 1', { kind: 'failed', error: 'exited with status 1: why' }],
  ['echo out; exit 125', { kind: 'failed', error: 'exited with status 125: out' }],
  ['exit 126', { kind: 'failed', error: 'exited with status 126' }],
  ['exit 127', { kind: 'failed', error: 'exited with status 127' }],
  ['exit 128', { kind: 'in-doubt', error: 'exited with status 128', over: true }],
  ['exit 255', { kind: 'in-doubt', error: 'exited with status 255', over: true }],
  ['kill -SEGV $$', { kind: 'in-doubt', error: 'killed by SIGSEGV', over: true }],
  ['echo half; kill -KILL $$', { kind: 'in-doubt', error: 'killed by SIGKILL; it had printed:\nhalf', over: true }],
])('"%s" is told as the contract says', async (text, outcome) => {
  expect(await toolOf({ command: script(text) }).perform({}, newContext())).toEqual(outcome)
})

test('a program that is not there or may not be executed has failed', async () => {
  const [missing, folder] = await Promise.all([
    toolOf({ command: ['no-such-program'] }).perform({}, newContext()),
    toolOf({ command: ['/tmp'] }).perform({}, newContext()),
  ])
  expect(missing).toEqual({ kind: 'failed', error: 'could not be started: not found: no-such-program', unbegun: true })
  expect(folder).toEqual({ kind: 'failed', error: 'could not be started: not executable: /tmp', unbegun: true })
})

test('of a large output both ends and the size are the result', async () => {
  const outcome = await toolOf({ command: script('seq 100000') }).perform({}, newContext())
  expect(outcome).toMatchObject({ kind: 'done', result: { totalBytes: 588_895 } })
  const { head, tail } = (outcome as { result: { head: string; tail: string } }).result
  expect([head.slice(0, 4), tail.slice(-7)]).toEqual(['1\n2\n', '100000\n'])
})

test('a timeout is called by its name, and all processes of the pipe are dead [R1]', async () => {
  const context = newContext()
  const tool = toolOf({ command: script('echo before; sleep 30 | cat'), timeoutMs: 1_000 })
  const outcome = await within(5_000, tool.perform({}, context), 'no end')
  expect(outcome).toEqual({ kind: 'in-doubt', error: 'timed out after 1s; it had printed:\nbefore', over: true })
  expect(processesWith(context.mark)).toEqual([])
})

test('the deadline of the turn holds, also in the supervisor, which outlives the worker [R1] [R3]', async () => {
  const context = newContext({ deadline: Date.now() + 900 })
  expect(errorOf(await toolOf({ command: script('sleep 30') }).perform({}, context))).toBe('timed out after 1s')
})

const running = (proof: string) => until(() => statSync(proof, { throwIfNoEntry: false }) !== undefined, 10_000, proof)

test('a cancel ends the whole pipeline and is called a cancel [R1] [R3]', async () => {
  const [context, proof] = [newContext(), `${freshFolder()}.ran`]
  const tool = toolOf({ command: script('touch "$1"; sleep 30 | cat', proof) })
  const performed = tool.perform({}, context)
  await running(proof)
  await until(() => processesWith(context.mark).length > 1, 5_000, 'the pipeline runs')
  context.abort()
  expect(await within(5_000, performed, 'no end')).toEqual({ kind: 'in-doubt', error: 'cancelled', over: true })
  expect(processesWith(context.mark)).toEqual([])
})

test('a stubborn command that ignores being asked is dead before the cancel is over [R3]', async () => {
  const [context, proof] = [newContext(), `${freshFolder()}.ran`]
  const text = 'trap "" TERM INT HUP; (trap "" TERM; setsid sleep 60 &) ; touch "$1"; while :; do sleep 0.05; done'
  const performed = toolOf({ command: script(text, proof), graceMs: 300 }).perform({}, context)
  await running(proof)
  context.abort()
  expect(errorOf(await performed)).toBe('cancelled')
  expect(processesWith(context.mark)).toEqual([])
})

test('two calls of one tool are cancelled each by its own signal [R3]', async () => {
  const [first, second] = [newContext(), newContext()]
  const proof = `${freshFolder()}.two`
  const tool = toolOf({ command: ['/bin/sh', '-c', 'touch "$0.$HOLDFAST_ACTION_KEY"; sleep 30 | cat', proof] })
  const [one, two] = [tool.perform({}, first), tool.perform({}, second)]
  await Promise.all([running(`${proof}.${first.key}`), running(`${proof}.${second.key}`)])
  first.abort()
  expect(errorOf(await one)).toBe('cancelled')
  expect(processesWith(first.mark)).toEqual([])
  await until(() => processesWith(second.mark).length > 1, 5_000, 'the other one runs')
  second.abort('timed out after 30m')
  expect(errorOf(await two)).toBe('timed out after 30m')
  expect(processesWith(second.mark)).toEqual([])
})

test('cancelled before it was started, it did not happen', async () => {
  const ledger = new Ledger()
  const tool = toolOf({ command: ledger.verb('append') })
  const context = newContext()
  context.abort()
  expect(await tool.perform({ entry: 'a' }, context)).toEqual({
    kind: 'failed',
    error: 'cancelled before it was started',
    unbegun: true,
  })
  expect(ledger.entries()).toEqual([])
})

test('a cancel at any moment of the start is never a false "did not happen" [R3]', { timeout: 60_000 }, async () => {
  const kinds = new Set<string>()
  // How long a start takes depends on the machine: until it was met before and after.
  for (let delay = 0; delay < 240 || !kinds.has('in-doubt'); delay += 12 + delay / 20) {
    const proof = `${freshFolder()}.ran`
    const context = newContext()
    setTimeout(() => context.abort(), delay)
    const { kind } = await toolOf({ command: script('echo ran > "$1"; sleep 30', proof) }).perform({}, context)
    kinds.add(kind)
    expect(kind === 'failed' && statSync(proof, { throwIfNoEntry: false }) !== undefined).toBe(false)
    expect(processesWith(context.mark)).toEqual([])
  }
  expect(kinds).toEqual(new Set(['failed', 'in-doubt']))
})

test('a lost lease is not called a cancel', async () => {
  const [context, proof] = [newContext(), `${freshFolder()}.ran`]
  const performed = toolOf({ command: script('touch "$1"; sleep 30', proof) }).perform({}, context)
  await running(proof)
  context.abort('lease-lost')
  expect(errorOf(await performed)).toBe('stopped because its worker lost the claim')
})

const stopScript = (proof: string) => script('cat > "$1"; echo " $HOLDFAST_ACTION_KEY" >> "$1"', proof)

test('the stop command ends what runs elsewhere, with the same input and key, after everything here is dead [R4]', async () => {
  const [context, proof, stopped] = [newContext(), `${freshFolder()}.ran`, `${freshFolder()}.stopped`]
  const tool = toolOf({ command: script('touch "$1"; sleep 30 | cat', proof), stop: stopScript(stopped) })
  const performed = tool.perform({ host: 'far' }, context)
  await running(proof)
  context.abort()
  expect(await performed).toEqual({ kind: 'in-doubt', error: 'cancelled', over: true })
  expect(readFileSync(stopped, 'utf8')).toBe(`{"host":"far"} ${context.key}\n`)
})

test('what has a stop command, and broke off by itself, may go on elsewhere: it is not called over [R4]', async () => {
  const tool = toolOf({ command: script('exit 255'), stop: script('exit 0') })
  expect(await tool.perform({}, newContext())).toEqual({ kind: 'in-doubt', error: 'exited with status 255' })
})

test('the stop command is run on a timeout, but not for what ended by itself [R4]', async () => {
  const [late, early] = [`${freshFolder()}.late`, `${freshFolder()}.early`]
  await toolOf({ command: script('sleep 30'), timeoutMs: 200, stop: stopScript(late) }).perform({}, newContext())
  await toolOf({ command: script('exit 1'), stop: stopScript(early) }).perform({}, newContext())
  expect(readFileSync(late, 'utf8')).toContain('{}')
  expect(statSync(early, { throwIfNoEntry: false })).toBeUndefined()
})

test('a stop command that fails or hangs is said to, and does not keep the cancel waiting [R4]', async () => {
  const limits = { command: script('sleep 30'), timeoutMs: 200 }
  const [failing, hanging] = [newContext(), newContext()]
  const began = performance.now()
  const [first, second] = await Promise.all([
    toolOf({ ...limits, stop: script('exit 3') }).perform({}, failing),
    toolOf({ ...limits, stop: script('trap "" TERM; sleep 60') }).perform({}, hanging),
  ])
  expect(errorOf(first)).toBe('timed out after 200ms\nits stop command failed: exited with status 3')
  expect(errorOf(second)).toBe('timed out after 200ms\nits stop command failed: timed out after 10s')
  // Then it may go on there: nobody says that it is over.
  expect([first, second]).toMatchObject([{ over: false }, { over: false }])
  expect(performance.now() - began).toBeLessThan(40_000)
})

test.each([
  ['echo \'{"outcome":"done","result":{"id":7}}\'', { kind: 'done', result: { id: 7 } }],
  ['echo \'{"outcome":"done"}\'', { kind: 'done', result: null }],
  ['echo \'{"outcome":"not_done"}\'', { kind: 'failed', error: 'its probe says that it did not happen' }],
  ['echo \'{"outcome":"unknown"}\'', { kind: 'unknown' }],
  ['echo \'{"outcome":"perhaps"}\'', { kind: 'unknown' }],
  ['echo \'{"outcome":"done"}\'; exit 1', { kind: 'unknown' }],
  ['echo done', { kind: 'unknown' }],
  ['echo null', { kind: 'unknown' }],
  [':', { kind: 'unknown' }],
  ['kill -KILL $$', { kind: 'unknown' }],
])('a probe that says "%s" is believed only if it is clear', async (text, answer) => {
  expect(await toolOf({ probe: script(text) }).probe?.({}, newContext())).toEqual(answer)
})

test('a probe gets the same input and key, and every question is asked anew', async () => {
  const ledger = new Ledger()
  const tool = toolOf({ command: ledger.verb('append'), probe: ledger.verb('probe') })
  const context = newContext()
  expect((await tool.probe?.({ entry: 'a' }, context))?.kind).toBe('failed')
  await tool.perform({ entry: 'a' }, context)
  expect(await tool.probe?.({ entry: 'a' }, context)).toEqual({ kind: 'done', result: { appended: 'a' } })
  expect((await tool.probe?.({ entry: 'b' }, context))?.kind).toBe('failed')
  expect((await tool.probe?.({ entry: 'a' }, newContext()))?.kind).toBe('failed')
  expect(ledger.entries()).toEqual([`${context.key} a`])
})

test('a probe that cannot be asked leaves the doubt as it is', async () => {
  const context = newContext({ folder: '/dev/null/no-folder' })
  expect(await toolOf({ probe: script('echo') }).probe?.({}, context)).toEqual({ kind: 'unknown' })
  expect(await toolOf({}).perform({}, context)).toMatchObject({ kind: 'failed' })
})

test('a probe that hangs is ended with its turn [R3]', async () => {
  const [context, proof] = [newContext(), `${freshFolder()}.ran`]
  const asked = toolOf({ probe: script('touch "$1"; sleep 60 | cat', proof) }).probe?.({}, context)
  await running(proof)
  context.abort()
  expect(await asked).toEqual({ kind: 'unknown' })
  expect(processesWith(context.key)).toEqual([])
})

test('identity is what the configuration names, and nothing else', () => {
  const all = toolOf({})
  const some = toolOf({ identity: ['entry'] })
  expect(all.identity({ entry: 'a', note: 'b' })).toEqual({ entry: 'a', note: 'b' })
  expect(some.identity({ entry: 'a', note: 'b' })).toEqual({ entry: 'a' })
  expect(some.identity({ note: 'b' })).toEqual({})
})

test('a second call in the folder of the first has no second effect', async () => {
  const ledger = new Ledger()
  const tool = toolOf({ command: ledger.verb('append') })
  const context = newContext()
  const both = await Promise.all([tool.perform({ entry: 'a' }, context), tool.perform({ entry: 'a' }, context)])
  expect(both.map(({ kind }) => kind)).toEqual(['done', 'done'])
  expect(ledger.entries()).toHaveLength(1)
})
