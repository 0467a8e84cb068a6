import { errorCode } from '../../base/files.ts'
import { EXIT } from './exit-code.ts'

let broken: Error | undefined

/** Whether nobody reads any more what goes to standard output, as behind `| head -1`, or it cannot be written. */
export const isOutputGone = (): boolean => broken !== undefined

/**
 * A reader who has gone is no surprise, and whoever reads the log of a daemon no more stops nobody. Answers what to end with:
 * what was not written was not said, so a full disk behind `> file` is a failure; a reader who has seen enough is none.
 */
export function watchOutput(): (code: number) => number {
  process.stdout.on('error', (error) => (broken ??= error))
  process.stderr.on('error', () => {})
  return (code) => {
    if (broken === undefined || errorCode(broken) === 'EPIPE') return code
    process.stderr.write(`holdfast: output/not-written: the result could not be written (${broken.message})\n`)
    return code === EXIT.done ? EXIT.failed : code
  }
}
