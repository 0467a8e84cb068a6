import type { Command } from 'commander'

import { examine } from '../workers/examine/examine.ts'
import type { Finding } from '../workers/examine/examine.ts'
import { HoldfastError, describeError } from '../base/errors.ts'
import { errorCode } from '../base/files.ts'
import { CLIENT_NAMES } from '../hooks/install/client.ts'
import { examineHooks } from '../hooks/install/status.ts'
import { withRuntime } from './context.ts'
import { beDiscreet } from './discreet.ts'
import { examineClients } from './doctor-clients.ts'
import { examineWindow } from './doctor-window.ts'
import { readEnvironment } from './environment.ts'
import type { Environment } from './environment.ts'
import { EXIT } from './exit-code.ts'
import { questionOf } from './hooks.ts'
import type { SetExit } from './main.ts'
import { makeOutput, visible } from './output.ts'
import type { Output } from './output.ts'

export function addDoctor(own: Command, setExit: SetExit): void {
  own.action(async (_: unknown, command: Command) => setExit(await doctor(command)))
}

/** A store that cannot be opened, or a configuration that is wrong, is a finding, not a failure of the doctor. */
async function doctor(command: Command): Promise<number> {
  const flags = command.optsWithGlobals<{ home?: string; store?: string; json?: boolean }>()
  const output = makeOutput(flags.json === true)
  await beDiscreet()
  let findings: Finding[]
  try {
    findings = []
    await withRuntime(command, async ({ runtime, environment }) => {
      findings = await examine({ home: runtime.home, store: runtime.store, env: environment.variables })
      return EXIT.done
    })
  } catch (error) {
    findings = [failedToOpen(error, readEnvironment(flags))]
  }
  const environment = readEnvironment(flags)
  const question = questionOf(environment, CLIENT_NAMES)
  return report(output, [
    ...findings,
    await examineWindow(environment.home),
    ...(await examineHooks(question)),
    ...(await examineClients(question)),
  ])
}

/** What everything else rests on, so it is looked at first. */
function failedToOpen(error: unknown, { home, store }: Environment): Finding {
  const cannotWrite = errorCode(error) === 'files/not-writable' || NO_FOLDER.has(errorCode(error) ?? '')
  const check = cannotWrite ? 'home' : errorCode(error) === 'usage/config' ? 'configuration' : 'store'
  const place = check === 'store' ? (store === undefined ? ` (home ${home})` : '') : ''
  const remedy = error instanceof HoldfastError ? error.remedy : undefined
  const detail = `${error instanceof HoldfastError ? `${error.code}: ${error.message}` : describeError(error)}${place}`
  const elsewhere = 'make it a folder that this user may write, or choose another with HOLDFAST_HOME'
  if (cannotWrite) return { check, status: 'fail', detail: `${home} cannot be used: ${detail}`, remedy: elsewhere }
  return { check, status: 'fail', detail, ...(remedy === undefined ? {} : { remedy }) }
}

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
