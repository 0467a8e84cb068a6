import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

import { judgeProcess, processIdentity } from '../../src/processes/identity.ts'
import type { ProcessIdentity } from '../../src/processes/identity.ts'

const BATCH = 600
/** Nothing is waited for this long: a kill takes microseconds. */
const MOST_LOOKS = 1_000_000

/**
 * Processes that do nothing but live. Each simulated worker has the identity of one, so that whoever asks whether that
 * worker lives, or kills it, asks and kills something real.
 */
export class StandIns {
  readonly #free: ProcessIdentity[] = []
  readonly #parents: ChildProcess[] = []

  /** Before a world begins: starting a process takes real time, and there is none in a world. */
  async prepare(): Promise<void> {
    if (this.#free.length < BATCH) await this.#start()
  }

  take(): ProcessIdentity {
    const next = this.#free.pop()
    if (next === undefined) throw new Error('this world starts more processes than were prepared')
    return judgeProcess(next) === 'alive' ? next : this.take()
  }

  giveBack(identity: ProcessIdentity): void {
    if (judgeProcess(identity) === 'alive') this.#free.push(identity)
  }

  /** Returns when it is dead for everybody who looks. */
  kill(identity: ProcessIdentity): void {
    if (judgeProcess(identity) === 'alive') process.kill(identity.pid, 'SIGKILL')
    for (let looks = 0; judgeProcess(identity) === 'alive'; looks++) {
      if (looks > MOST_LOOKS) throw new Error(`process ${identity.pid} does not die`)
    }
  }

  stop(): void {
    for (const { pid } of this.#parents) {
      try {
        if (pid !== undefined) process.kill(-pid, 'SIGKILL')
      } catch {
        // All of them were killed already.
      }
    }
  }

  async #start(): Promise<void> {
    const script = `for i in $(seq ${BATCH}); do sleep 100000 </dev/null >/dev/null 2>&1 & echo $!; done; exec >&-; wait`
    const parent = spawn('/bin/sh', ['-c', script], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
    this.#parents.push(parent)
    let printed = ''
    parent.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    await once(parent.stdout, 'end')
    parent.unref()
    const pids = printed.trim().split('\n')
    this.#free.push(...pids.flatMap((pid) => processIdentity(Number(pid)) ?? []))
  }
}
