import type { Command } from 'commander'

import { systemClock as clock } from '../../base/clock.ts'
import { HoldfastError, describeError } from '../../base/errors.ts'
import { isClone } from '../../base/place.ts'
import type { Act, Check } from './act.ts'
import { inDoubt } from './in-doubt.ts'
import { killed } from './killed.ts'
import { rateLimit } from './rate-limit.ts'
import { Stage } from './stage.ts'
import { stubborn } from './stubborn.ts'
import { EXIT, signalExitCode } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { makeOutput, progress, table, visible } from '../words/output.ts'
import type { Output } from '../words/output.ts'

interface DemoFlags {
  readonly keep?: boolean
  readonly json?: boolean
  readonly home?: string
  readonly store?: string
  readonly config?: string
}

export function addDemo(own: Command, setExit: SetExit): void {
  own
    .option('--keep', 'leave the folder with everything in it')
    .action(async (_: unknown, command: Command) => setExit(await demo(command.optsWithGlobals<DemoFlags>())))
}

interface PlayedAct {
  readonly name: string
  readonly title: string
  readonly facts?: unknown
  readonly checks: readonly Check[]
}

async function demo(flags: DemoFlags): Promise<number> {
  if (flags.home !== undefined || flags.store !== undefined || flags.config !== undefined) {
    throw new HoldfastError('usage/demo', 'the demo has a home, a store and a configuration of its own', {
      remedy: 'leave out --home, --store and --config; --keep leaves what it made',
    })
  }
  const output = makeOutput(flags.json === true)
  const interrupt = new AbortController()
  const signals = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((signal) => ({
    signal,
    listener: () => interrupt.abort(new Interrupted(signal)),
  }))
  for (const { signal, listener } of signals) process.on(signal, listener)
  const stage = new Stage(clock, interrupt.signal)
  try {
    return await play(stage, output, flags.keep === true)
  } catch (error) {
    if (error instanceof Interrupted) return signalExitCode(error.signal)
    throw error
  } finally {
    await stage.strike(flags.keep === true)
    for (const { signal, listener } of signals) process.off(signal, listener)
  }
}

class Interrupted extends Error {
  readonly signal: NodeJS.Signals
  constructor(signal: NodeJS.Signals) {
    super(`stopped by ${signal}`)
    this.signal = signal
  }
}

/** The story is the result; beside `--json` it is progress. */
const teller = (output: Output) => (text: string) => {
  if (output.json) progress(text)
  else process.stdout.write(`${visible(text)}\n`)
}

async function play(stage: Stage, output: Output, keep: boolean): Promise<number> {
  const tell = teller(output)
  const begin = clock.monotonicMs()
  tell(`No keys, no network, real processes, less than a minute. Everything is in ${stage.folder}.`)
  const acts: PlayedAct[] = []
  for (const perform of ACTS) {
    const act = await perform(stage, tell, acts.length + 1)
    acts.push(act)
    if (!isVerified(act)) break
  }
  const verified = acts.length === ACTS.length && acts.every(isVerified)
  const elapsedMs = Math.round(clock.monotonicMs() - begin)
  output.result({ verified, elapsedMs, ...(keep ? { folder: stage.folder } : {}), acts }, () =>
    ['', verified ? whatNext(stage, keep, acts) : '', total(acts, elapsedMs)].filter(notTwice).join('\n'),
  )
  return verified ? EXIT.done : EXIT.failed
}

const notTwice = (line: string, index: number) => index === 0 || line !== ''

const performing =
  <Facts>(act: Act<Facts>) =>
  async (stage: Stage, tell: (text: string) => void, number: number): Promise<PlayedAct> => {
    const { name, title } = act
    tell(`\n${number}. ${title}`)
    const played = await act
      .play(stage, (sentence) => tell(`   ${sentence}`))
      .then(
        (facts) => ({ facts, checks: act.judge(facts) }),
        (error: unknown) => {
          if (error instanceof Interrupted) throw error
          return { checks: [{ what: 'it could be played to its end', ok: false, seen: describeError(error) }] }
        },
      )
    for (const check of played.checks) tell(`   ${describeCheck(check)}`)
    return { name, title, ...played }
  }

const ACTS = [performing(killed), performing(inDoubt), performing(rateLimit), performing(stubborn)]

const isVerified = ({ checks }: Pick<PlayedAct, 'checks'>): boolean => checks.length > 0 && checks.every(({ ok }) => ok)

const describeCheck = ({ what, ok, seen }: Check) =>
  ok ? `ok    ${what}` : `FAIL  ${what}; seen: ${typeof seen === 'string' ? seen : JSON.stringify(seen)}`

function total(acts: readonly PlayedAct[], elapsedMs: number): string {
  const checks = acts.flatMap((act) => act.checks)
  const failed = checks.filter(({ ok }) => !ok).length
  const of = `${checks.length} checks in ${acts.length} of ${ACTS.length} acts, ${Math.round(elapsedMs / 1_000)} s`
  return failed === 0 ? `All verified: ${of}.` : `${failed} failed: ${of}.`
}

function whatNext(stage: Stage, keep: boolean, acts: readonly PlayedAct[]): string {
  const holdfast = isClone ? './bin/holdfast' : 'holdfast'
  const look = keep ? [] : [[`${holdfast} demo --keep`, 'the same, and what it made stays to be looked at']]
  const lines = [
    ...look,
    [isClone ? 'npm start' : 'holdfast up', 'the daemon, and a window in the browser'],
    [
      `${holdfast} send --agent NAME TEXT --wait`,
      'a message to an agent of your own; the README has one to begin with',
    ],
    [`${holdfast} runs show RUN`, 'what it said and did, and who settled what'],
  ]
  const kept = keep
    ? `Everything is in ${stage.folder}. Its first run, step by step:\n  ${lookAt(stage, acts)}\n\n`
    : ''
  return `${kept}What to try next:\n${indented(table(lines[0] ?? [], lines.slice(1)))}\n`
}

function lookAt({ home, config }: Stage, acts: readonly PlayedAct[]): string {
  const facts = acts[0]?.facts as { readonly runId: string } | undefined
  return `${isClone ? './bin/holdfast' : 'holdfast'} --home ${home} --config ${config} runs show ${facts?.runId}`
}

const indented = (text: string) => text.replaceAll(/^/gm, '  ')
