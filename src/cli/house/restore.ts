import { resolve } from 'node:path'

import type { Command } from 'commander'

import { systemClock } from '../../base/clock.ts'
import { systemRandomness } from '../../base/ids.ts'
import { restoreBackup } from '../../workers/history/restore.ts'
import type { Restored } from '../../workers/history/restore.ts'
import { beDiscreet } from '../around/discreet.ts'
import { readEnvironment } from '../around/environment.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { makeOutput } from '../words/output.ts'
import { refuseInsideRun } from '../around/person.ts'

interface RestoreFlags {
  readonly home?: string
  readonly store?: string
  readonly json?: boolean
  readonly acceptRestore?: boolean
}

export function addRestore(own: Command, setExit: SetExit): void {
  own.action(async (file: string, _: unknown, command: Command) =>
    setExit(await restore(resolve(file), command.optsWithGlobals<RestoreFlags>())),
  )
}

async function restore(file: string, flags: RestoreFlags): Promise<number> {
  const output = makeOutput(flags.json === true)
  const environment = readEnvironment(flags)
  await beDiscreet()
  refuseInsideRun({ environment })
  const restored = await restoreBackup({
    home: environment.home,
    store: environment.store,
    file,
    accept: flags.acceptRestore === true,
    clock: systemClock,
    random: systemRandomness,
  })
  output.result(restored, () => describe(restored))
  if (restored.forgotten > 0) output.note(AGAIN)
  return EXIT.done
}

const describe = ({ database, from, seq, kept }: Restored) =>
  [
    `${database} is ${from}, up to event ${seq}`,
    ...(kept === undefined ? [] : [`what was there is kept: ${kept}`]),
    '`holdfast doctor` looks it over; `holdfast up` goes on with it',
  ].join('\n')

const AGAIN =
  'what was queued when the backup was made waits again, also where it has been done since: look at `holdfast status` ' +
  'and cancel what must not happen twice, before `holdfast up`'
