import type { Command } from 'commander'

import { examine } from '../workers/examine.ts'
import type { Finding } from '../workers/examine.ts'
import { describeError } from '../base/errors.ts'
import { errorCode } from '../base/files.ts'
import { CLIENT_NAMES } from '../hooks/install/client.ts'
import { examineHooks } from '../hooks/install/status.ts'
import { withRuntime } from './context.ts'
import { readEnvironment } from './environment.ts'
import { EXIT } from './exit-code.ts'
import { questionOf } from './hooks.ts'
import type { SetExit } from './main.ts'
import { makeOutput, visible } from './output.ts'
import type { Output } from './output.ts'

export function addDoctor(program: Command, setExit: SetExit): void {
  program
    .command('doctor')
    .description('what is wrong with this installation, and how to mend it')
    .action(async (_: unknown, command: Command) => setExit(await doctor(command)))
}

/** A store that cannot be opened, or a configuration that is wrong, is a finding, not a failure of the doctor. */
async function doctor(command: Command): Promise<number> {
  const flags = command.optsWithGlobals<{ home?: string; store?: string; json?: boolean }>()
  const output = makeOutput(flags.json === true)
  let findings: Finding[]
  try {
    findings = []
    await withRuntime(command, async ({ runtime }) => {
      findings = await examine(runtime)
      return EXIT.done
    })
  } catch (error) {
    const { home } = readEnvironment(flags)
    const check = errorCode(error) === 'usage/config' ? 'configuration' : 'store'
    findings = [{ check, status: 'fail', detail: `${describeError(error)} (home ${home})` }]
  }
  return report(output, [...findings, ...(await examineHooks(questionOf(readEnvironment(flags), CLIENT_NAMES)))])
}

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
