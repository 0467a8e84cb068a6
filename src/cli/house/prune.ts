import { resolve } from 'node:path'

import type { Command } from 'commander'

import { formatDuration } from '../../base/duration.ts'
import { LIMITS } from '../../base/limits.ts'
import { forgetHistory } from '../../workers/history/forget.ts'
import type { Forgotten } from '../../workers/history/forget.ts'
import { forgetting } from '../../workers/history/keeper.ts'
import { withRuntime } from '../around/context.ts'
import type { Context } from '../around/context.ts'
import { durationOption } from '../words/duration-option.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'

interface PruneFlags {
  readonly olderThan?: number
  readonly threadsOlderThan?: number
  readonly archive?: string
  readonly dryRun?: boolean
}

export function addPrune(own: Command, setExit: SetExit): void {
  own
    .option(
      '--older-than <duration>',
      'runs that ended longer ago than this (default: as configured, or 90d)',
      durationOption,
    )
    .option(
      '--threads-older-than <duration>',
      'also conversations in which nothing has happened for so long (default: they are kept)',
      durationOption,
    )
    .option('--archive <folder>', 'write what goes into files there first, as packed JSON lines')
    .option('--dry-run', 'only say what would go')
    .action(async (flags: PruneFlags, command: Command) =>
      setExit(await withRuntime(command, (context) => prune(context, flags), 'welcome')),
    )
}

/** Beside whatever runs: half of the time is left to others. */
const SHARE = 0.5

async function prune({ runtime, output }: Context, flags: PruneFlags): Promise<number> {
  const { store, clock, random, config } = runtime
  const configured = forgetting(config) ?? { cut: { runsMs: LIMITS.runsKeptMs } }
  const cut = {
    ...configured.cut,
    ...(flags.olderThan === undefined ? {} : { runsMs: flags.olderThan }),
    ...(flags.threadsOlderThan === undefined ? {} : { threadsMs: flags.threadsOlderThan }),
  }
  const archive = flags.archive === undefined ? configured.archive : resolve(flags.archive)
  const dry = flags.dryRun === true
  const forgotten = await forgetHistory({
    ...configured,
    store,
    clock,
    random,
    cut,
    dry,
    share: SHARE,
    mayGoOn: async () => true,
    ...(archive === undefined ? {} : { archive }),
  })
  const whole = {
    olderThanMs: cut.runsMs,
    dryRun: dry,
    ...forgotten,
    ...(archive === undefined || dry ? {} : { archive }),
  }
  output.result(whole, () => sentence(forgotten, cut.runsMs, dry))
  if (store.engine === 'sqlite' && !dry && forgotten.runs > 0)
    output.note(
      'the file stays as large as it is, and what is new goes into the room; docs/scaling.md says how it is made smaller',
    )
  return EXIT.done
}

const sentence = ({ runs, events, threads, acts, held }: Forgotten, runsMs: number, dry: boolean) =>
  `${dry ? 'would forget' : 'forgot'} ${runs} runs that ended more than ${formatDuration(runsMs)} ago, ${events} other events, ` +
  `${threads} empty threads${dry ? '' : `, ${acts} lines of the audit`}; ${held} runs of that age are still needed`
