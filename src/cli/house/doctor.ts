import type { Command } from 'commander'

import { examine } from '../../workers/examine/examine.ts'
import type { Finding } from '../../workers/examine/examine.ts'
import { examineClockAlone } from '../../workers/examine/clock.ts'
import { examineMachine } from '../../workers/examine/machine.ts'
import { systemClock } from '../../base/clock.ts'
import { HoldfastError, describeError } from '../../base/errors.ts'
import { errorCode } from '../../base/files.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { CLIENT_NAMES } from '../../hooks/install/client.ts'
import { examineHooks } from '../../hooks/install/status.ts'
import { withRuntime } from '../around/context.ts'
import type { Context } from '../around/context.ts'
import { beDiscreet } from '../around/discreet.ts'
import { examineAgents } from './doctor-agents.ts'
import { examineClients } from './doctor-clients.ts'
import { examineWindow } from './doctor-window.ts'
import { readEnvironment } from '../around/environment.ts'
import type { Environment } from '../around/environment.ts'
import { EXIT } from '../words/exit-code.ts'
import { questionOf } from '../clients/hooks.ts'
import type { SetExit } from '../main.ts'
import { makeOutput, visible } from '../words/output.ts'
import type { Output } from '../words/output.ts'

export function addDoctor(own: Command, setExit: SetExit): void {
  own.action(async (_: unknown, command: Command) => setExit(await doctor(command)))
}

/** A store that cannot be opened, or a configuration that is wrong, is a finding, not a failure of the doctor. */
async function doctor(command: Command): Promise<number> {
  const flags = command.optsWithGlobals<{ home?: string; store?: string; json?: boolean }>()
  const output = makeOutput(flags.json === true)
  await beDiscreet()
  const environment = readEnvironment(flags)
  const { findings, config } = await lookInside(command, environment)
  const question = questionOf(environment, CLIENT_NAMES)
  return report(output, [
    ...findings,
    ...(await examineMachine(environment.home, environment.variables)),
    await examineWindow(environment.home),
    ...(await examineHooks(question)),
    ...(await examineClients(question)),
    ...(await examineAgents(config, environment.variables)),
  ])
}

interface Inside {
  readonly findings: readonly Finding[]
  readonly config?: LoadedConfig | undefined
}

/** What is wrong with a configuration says nothing about the store, and is not in the way of looking at it. */
async function lookInside(command: Command, environment: Environment): Promise<Inside> {
  try {
    return await opened(command, 'needed')
  } catch (error) {
    const failure = failedToOpen(error, environment)
    const shut: Inside = { findings: [examineClockAlone(systemClock)] }
    const rest = failure.check === 'configuration' ? await opened(command, 'none').catch(() => shut) : shut
    return { findings: [failure, ...rest.findings] }
  }
}

async function opened(command: Command, configuration: 'needed' | 'none'): Promise<Inside> {
  let inside: Inside = { findings: [] }
  const look = async ({ runtime: { home, store, config } }: Context) => {
    inside = { findings: await examine({ home, store }), config }
    return EXIT.done
  }
  await withRuntime(command, look, configuration)
  return inside
}

/** What everything else rests on, so it is looked at first. */
function failedToOpen(error: unknown, { home, store }: Environment): Finding {
  const cannotWrite = errorCode(error) === 'files/not-writable' || NO_FOLDER.has(errorCode(error) ?? '')
  const check = cannotWrite ? 'home' : WRITTEN.test(errorCode(error) ?? '') ? 'configuration' : 'store'
  const place = check === 'store' ? (store === undefined ? ` (home ${home})` : '') : ''
  const remedy = error instanceof HoldfastError ? error.remedy : undefined
  const detail = `${error instanceof HoldfastError ? `${error.code}: ${error.message}` : describeError(error)}${place}`
  const elsewhere = 'make it a folder that this user may write, or choose another with HOLDFAST_HOME'
  if (cannotWrite) return { check, status: 'fail', detail: `${home} cannot be used: ${detail}`, remedy: elsewhere }
  return { check, status: 'fail', detail, ...(remedy === undefined ? {} : { remedy }) }
}

/** What somebody wrote down is wrong; not where the store is, which is looked at before any configuration. */
const WRITTEN = /^(usage(?!\/store)|model|tools|mcp)\//

/** The system's words for a way that leads through something that is no folder. */
const NO_FOLDER: ReadonlySet<string> = new Set(['files/not-a-folder', 'ENOTDIR', 'EEXIST', 'ENOENT'])

const MARKS = { ok: 'ok  ', warn: 'warn', fail: 'FAIL' } as const

function report(output: Output, findings: readonly Finding[]): number {
  const failed = findings.some(({ status }) => status === 'fail')
  output.result({ healthy: !failed, findings }, () =>
    findings
      .map(({ check, status, detail, remedy }) =>
        visible(`${MARKS[status]}  ${check}: ${detail}${remedy === undefined ? '' : `\n      ${remedy}`}`),
      )
      .join('\n'),
  )
  return failed ? EXIT.failed : EXIT.done
}
