import { join, normalize } from 'node:path'

/** The calls by which a process begins, and goes to another folder. */
export const MOVING = 'clone,clone3,fork,vfork,chdir,fchdir'

const BORN = /^(?:<\.\.\. )?(?:clone3?|v?fork)(?: resumed>|\().* = (\S+)/s
const BEARS = /^(?:clone3?|v?fork)\(/

/** Where each process is at work: what it names without saying where is there. A trace does not say it. */
export class WorkingFolders {
  /** By the thread that starts them, in their order. A child is in the trace before the call that made it has answered. */
  readonly #children = new Map<string, string[]>()
  readonly #folders = new Map<string, string>()

  lookAhead(line: string): void {
    const [, thread = '', rest = ''] = /^(\d+) +(.*)$/s.exec(line) ?? []
    const child = BORN.exec(rest)?.[1]
    if (child !== undefined) this.#children.set(thread, [...(this.#children.get(thread) ?? []), child])
  }

  follow(thread: string, rest: string): void {
    const here = this.of(thread)
    if (BEARS.test(rest)) this.#folders.set(this.#children.get(thread)?.shift() ?? '', here)
    const named = /^chdir\("((?:\\x[0-9a-f]{2})*)"\) += 0/.exec(rest)?.[1]
    if (named !== undefined) this.#folders.set(thread, absolute(here, textOf(named)))
    const opened = /^fchdir\(\d+<([^>]*)>\) += 0/.exec(rest)?.[1]
    if (opened !== undefined) this.#folders.set(thread, textOf(opened))
  }

  /** The first one is where nothing of ours is. */
  of(thread: string): string {
    return this.#folders.get(thread) ?? '/'
  }
}

/** Hexadecimal, as the trace has all texts. */
export const textOf = (hex: string) => Buffer.from(hex.replaceAll('\\x', ''), 'hex').toString()

export const absolute = (folder: string, path: string) =>
  (path.startsWith('/') ? normalize(path) : join(folder, path)).replace(/(?<=.)\/$/, '')
