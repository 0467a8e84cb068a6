import { InvalidArgumentError, Option } from 'commander'
import type { Command } from 'commander'

import type { OptionsRequest, WhenRequest } from '../../schedule/request.ts'
import { WEBHOOK_METHODS } from '../../schedule/request.ts'

/** When, as flags have it. */
export interface WhenFlags {
  readonly in?: string
  readonly at?: string
  readonly every?: string
  readonly anchor?: string
  readonly cron?: string
  readonly tz?: string
  readonly until?: string
}

export interface TargetFlags {
  readonly thread?: string
  readonly agent?: string
  readonly webhook?: string
  readonly method?: string
  readonly body?: string
  readonly cwd?: string
  readonly timeout?: string
}

/** "none" takes a limit away. The names are those of the request. */
const LIMIT_FLAGS = ['until', 'maxFirings', 'maxCostUsd', 'maxCostUsdADay'] as const
type LimitFlags = { readonly [Key in Exclude<(typeof LIMIT_FLAGS)[number], 'until'>]?: number | 'none' } & {
  readonly until?: string
}
export type OptionFlags = Omit<OptionsRequest, keyof LimitFlags> & LimitFlags

const OPTION_FLAGS = [
  'misfire',
  'grace',
  'overlap',
  'retries',
  'retryBase',
  'retryFactor',
  'retryJitter',
  'transient',
  'pauseAfter',
  'stopped',
  'jitter',
  'deleteAfterRun',
  'why',
  ...LIMIT_FLAGS,
] as const satisfies readonly (keyof OptionsRequest)[]

/** As the API takes them: instants are texts. */
type Dealing = Omit<OptionsRequest, 'until' | 'transient'> & {
  readonly until?: string | null
  readonly transient?: string[]
}

export const optionsOf = (flags: OptionFlags): Dealing =>
  Object.fromEntries(
    OPTION_FLAGS.flatMap((key) => {
      const value = flags[key]
      return value === undefined ? [] : [[key, value === 'none' ? null : value]]
    }),
  )

export type ScheduleFlags = WhenFlags &
  TargetFlags &
  OptionFlags & { readonly dryRun?: boolean; readonly owner?: string }

type When = { readonly [Key in keyof WhenRequest]?: string }

export const whenOf = ({ tz, in: delay, at, every, anchor, cron }: WhenFlags): When => ({
  ...(delay === undefined ? {} : { in: delay }),
  ...(at === undefined ? {} : { at }),
  ...(every === undefined ? {} : { every }),
  ...(anchor === undefined ? {} : { anchor }),
  ...(cron === undefined ? {} : { cron }),
  ...(tz === undefined ? {} : { zone: tz }),
})

export function withWhen(command: Command): Command {
  return command
    .option('--in <duration>', 'once, after this: 500ms, 10s, 30m, 12h, 14d')
    .option('--at <instant>', 'once, then: 2026-12-01T09:00, with Z or an offset if it is not the time here')
}

export function withRule(command: Command): Command {
  return withWhen(command)
    .option('--every <duration>', 'again and again at this distance, whatever was late')
    .option('--anchor <instant>', 'with --every: one of its instants (default: one interval from now)')
    .option('--cron <expression>', '5 fields as in crontab(5), or 6 with seconds first')
    .option('--tz <zone>', "IANA zone of --cron, and of times without an offset (default: the machine's)")
}

export function withTarget(command: Command): Command {
  return command
    .option('--thread <thread>', 'the words are a message to this thread, or self')
    .option('--agent <name>', 'the words start a new thread of this agent, each time')
    .option('--webhook <url>', 'this address is called')
    .addOption(new Option('--method <method>', 'how it is called (default: POST)').choices(WEBHOOK_METHODS))
    .option('--body <json>', 'what is sent there')
    .option('--cwd <folder>', 'where the command runs (default: here)')
    .option('--timeout <duration>', 'how long the command may take')
}

export function withOptions(command: Command): Command {
  return command
    .option('--misfire <policy>', 'instants that were missed: once (the last, late), skip, or each:N (the last N)')
    .option('--grace <duration>', 'later than this is missed (default: 1m)')
    .addOption(
      new Option('--overlap <policy>', 'the one before is still at work (default: skip)').choices([
        'skip',
        'queue',
        'cancel',
      ]),
    )
    .option('--retries <count>', 'of what failed before it did anything (default: 3)', numberOption)
    .option('--retry-base <duration>', 'the first wait (default: 200ms)')
    .option('--retry-factor <number>', 'how the waits grow (default: 2)', numberOption)
    .option('--retry-jitter <share>', 'how much of a wait chance may add, from 0 to 1 (default: 0)', numberOption)
    .option('--transient <code...>', 'failures that may be tried again: codes, or exit:3')
    .option('--pause-after <failures>', 'in a row; 0: never (default: 5)', numberOption)
    .addOption(
      new Option('--stopped <policy>', 'its thread is stopped (default: hold)').choices(['hold', 'drop', 'wake']),
    )
    .option('--jitter <duration>', 'each comes up to this much later, so that not all come on the hour')
    .option('--delete-after-run', 'it is removed after its first firing, however that ended')
    .option('--until <instant>', 'nothing comes after this; "none" takes it away')
    .option(
      '--max-firings <count>',
      'so many, then it is over (what an overlap skipped counts too); or "none"',
      orNone(numberOption),
    )
    .option('--max-cost-usd <usd>', 'what one firing may spend; or "none"', orNone(numberOption))
    .option('--max-cost-usd-a-day <usd>', 'what all firings of a day may spend; or "none"', orNone(numberOption))
    .option('--why <text>', 'what it is for, in your words')
}

function numberOption(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('a number is wanted')
  return value
}

const orNone =
  <T>(read: (text: string) => T) =>
  (text: string): T | 'none' =>
    text === 'none' ? text : read(text)

/** What stands behind `--`, which Commander does not tell from the words before it. */
export function afterDashes(command: Command): readonly string[] | undefined {
  let root = command
  while (root.parent !== null) root = root.parent
  const { rawArgs } = root as Command & { readonly rawArgs: readonly string[] }
  const dashes = rawArgs.indexOf('--')
  return dashes === -1 ? undefined : rawArgs.slice(dashes + 1)
}
