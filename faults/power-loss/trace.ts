import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'

import { absolute, MOVING, textOf, WorkingFolders } from './working-folders.ts'

/*
 * What strace wrote down, as what happened to the files below one folder, in the order in which it happened, and what was said
 * to somebody meanwhile. Texts are hexadecimal (`-xx`), and file handles are named by their paths (`-y`).
 */

/** The calls that can change what is on a disk, and those by which something is said. */
export const TRACED = `open,openat,creat,write,writev,pwrite64,pwritev,pwritev2,ftruncate,truncate,fallocate,fsync,fdatasync,\
sync_file_range,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,mkdir,mkdirat,chmod,fchmod,fchmodat,\
copy_file_range,sendfile,mmap,${MOVING}`

export type Happened =
  | {
      readonly kind: 'opened'
      readonly path: string
      readonly creates: boolean
      readonly empties: boolean
      readonly executable?: boolean
    }
  /** Without a place: at the end. Nobody here writes in the middle of a file but by `pwrite`. */
  | { readonly kind: 'wrote'; readonly path: string; readonly bytes: Buffer; readonly at?: number }
  | { readonly kind: 'copied'; readonly from: string; readonly path: string; readonly length: number }
  | { readonly kind: 'resized'; readonly path: string; readonly length: number; readonly grows: boolean }
  /** Written out, and on disk for certain with the next sync of anything in that file system: how git syncs many objects at once. */
  | { readonly kind: 'written-out'; readonly path: string }
  /** What was there when it was asked for is on disk when it has answered. */
  | { readonly kind: 'sync-asked'; readonly path: string; readonly sync: number }
  | { readonly kind: 'synced'; readonly path: string; readonly sync: number }
  | { readonly kind: 'renamed'; readonly from: string; readonly path: string }
  | { readonly kind: 'linked'; readonly from: string; readonly path: string }
  | { readonly kind: 'pointed'; readonly path: string; readonly target: string }
  | { readonly kind: 'allowed'; readonly path: string; readonly executable: boolean }
  | { readonly kind: 'removed'; readonly path: string }
  | { readonly kind: 'made-folder'; readonly path: string }
  | { readonly kind: 'said'; readonly text: string }
  /** A line of the ledger, which stands for the world: what is in it has happened, whatever a disk forgets. */
  | { readonly kind: 'effect'; readonly text: string }
  /** Something that a trace does not show in full: then its states prove nothing. */
  | { readonly kind: 'unseen'; readonly what: string }

/** Beside the disk that loses its power. */
export const ledgerOf = (root: string) => `${root}.ledger`

interface Call {
  readonly name: string
  readonly args: string
  /** Undefined: it has not answered yet. */
  readonly answer: string | undefined
  /** Where its process was at work: what the paths without a beginning begin with. */
  readonly cwd: string
}

/** Reads the trace; what is outside of the folder is left out. */
export async function readTrace(file: string, root: string): Promise<Happened[]> {
  const lines = () => createInterface({ input: createReadStream(file, 'latin1') })
  const folders = new WorkingFolders()
  for await (const line of lines()) folders.lookAhead(line)
  const reader = new Reader(root, folders)
  for await (const line of lines()) reader.take(line)
  return reader.happened
}

class Reader {
  readonly happened: Happened[] = []
  readonly #root: string
  readonly #folders: WorkingFolders
  readonly #unfinished = new Map<string, { readonly args: string; readonly sync: number; readonly cwd: string }>()
  #syncs = 0

  constructor(root: string, folders: WorkingFolders) {
    this.#root = root
    this.#folders = folders
  }

  take(line: string): void {
    const [, thread = '', rest = ''] = /^(\d+) +(.*)$/s.exec(line) ?? []
    this.#folders.follow(thread, rest)
    const cwd = this.#folders.of(thread)
    const resumed = /^<\.\.\. (\w+) resumed>(.*)$/s.exec(rest)
    if (resumed !== null) return this.#resume(thread, resumed[1]!, resumed[2]!)
    const begun = /^(\w+)\((.*) <unfinished \.\.\.>$/s.exec(rest)
    if (begun !== null) {
      const sync = (this.#syncs += 1)
      this.#unfinished.set(thread, { args: begun[2]!, sync, cwd })
      return this.#begin({ name: begun[1]!, args: begun[2]!, answer: undefined, cwd }, sync)
    }
    const whole = /^(\w+)\((.*)\) += (.*)$/s.exec(rest)
    if (whole === null) return
    const call = { name: whole[1]!, args: whole[2]!, answer: whole[3]!, cwd }
    const sync = (this.#syncs += 1)
    this.#begin(call, sync)
    this.#end(call, sync)
  }

  #resume(thread: string, name: string, rest: string): void {
    const { args, sync, cwd } = this.#unfinished.get(thread) ?? { args: '', sync: 0, cwd: '/' }
    this.#unfinished.delete(thread)
    const ended = /^(.*)\) += (.*)$/s.exec(rest)
    if (ended !== null) this.#end({ name, args: args + ended[1]!, answer: ended[2]!, cwd }, sync)
  }

  /** What is said is said when it is written, whenever that call comes back. */
  #begin(call: Call, sync: number): void {
    if (call.name === 'fsync' || call.name === 'fdatasync') {
      const path = this.#handle(call.args)
      if (path !== undefined) this.happened.push({ kind: 'sync-asked', path, sync })
    }
    if (call.name !== 'write' && call.name !== 'writev') return
    const path = /^\d+<([^>]*)>/.exec(call.args)?.[1] ?? ''
    if (textOf(path) === ledgerOf(this.#root))
      this.happened.push({ kind: 'effect', text: bytesIn(call.args).toString().trim() })
    if (/^\d+<(?:\\x70\\x69\\x70\\x65|\\x73\\x6f\\x63\\x6b\\x65\\x74)\\x3a/.test(call.args))
      this.happened.push({ kind: 'said', text: bytesIn(call.args).toString() })
  }

  #end(call: Call, sync: number): void {
    if (call.answer === undefined || call.answer.startsWith('-1') || call.answer.startsWith('?')) return
    if (call.name === 'fsync' || call.name === 'fdatasync') {
      const path = this.#handle(call.args)
      if (path !== undefined) this.happened.push({ kind: 'synced', path, sync })
      return
    }
    const happened = this.#read(call, Number.parseInt(call.answer, 10))
    if (happened !== undefined) this.happened.push(happened)
  }

  #read(call: Call, answer: number): Happened | undefined {
    const { name, args } = call
    switch (name) {
      case 'open':
      case 'openat':
      case 'creat':
        return this.#opened(call)
      case 'write':
      case 'writev':
      case 'pwrite64':
      case 'pwritev':
      case 'pwritev2':
        return this.#wrote(name, args, answer)
      case 'mmap':
        return this.#mapped(args)
      case 'copy_file_range':
      case 'sendfile':
        return this.#copied(name, args, answer)
      case 'ftruncate':
      case 'truncate':
      case 'fallocate':
        return this.#resized(call)
      case 'sync_file_range': {
        const path = this.#handle(args)
        return path === undefined ? undefined : { kind: 'written-out', path }
      }
      case 'symlink':
      case 'symlinkat':
        return this.#pointed(call)
      case 'chmod':
      case 'fchmod':
      case 'fchmodat':
        return this.#allowed(call)
      default:
        return this.#changedNames(call)
    }
  }

  #opened(call: Call): Happened | undefined {
    const path = this.#paths(call)[0]
    const flags = call.name === 'creat' ? 'O_CREAT|O_TRUNC' : call.args
    const [creates, empties] = [flags.includes('O_CREAT'), flags.includes('O_TRUNC')]
    if (path === undefined || !(creates || empties)) return undefined
    return { kind: 'opened', path, creates, empties, executable: creates && isExecutable(call.args) }
  }

  #pointed({ args, cwd }: Call): Happened | undefined {
    const [, target = '', folder, name = ''] =
      /^"((?:\\x[0-9a-f]{2})*)", (?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:\\x[0-9a-f]{2})*)"/.exec(args) ?? []
    const path = absolute(folder === undefined ? cwd : textOf(folder), textOf(name))
    return this.#isBelow(path) ? { kind: 'pointed', path, target: textOf(target) } : undefined
  }

  #allowed(call: Call): Happened | undefined {
    const path = call.name === 'fchmod' ? this.#handle(call.args) : this.#paths(call)[0]
    return path === undefined ? undefined : { kind: 'allowed', path, executable: isExecutable(call.args) }
  }

  #wrote(name: string, args: string, count: number): Happened | undefined {
    const path = this.#handle(args)
    if (path === undefined) return undefined
    const bytes = bytesIn(args).subarray(0, count)
    if (!name.startsWith('p')) return { kind: 'wrote', path, bytes }
    return { kind: 'wrote', path, bytes, at: Number(args.split(', ').at(name === 'pwritev2' ? -2 : -1)) }
  }

  /** The shared memory of SQLite is made anew from the log; anything else that is written through memory is not seen here. */
  #mapped(args: string): Happened | undefined {
    if (!args.includes('MAP_SHARED') || !args.includes('PROT_WRITE')) return undefined
    const path = /, \d+<([^>]*)>, /.exec(args)?.[1]
    const file = path === undefined ? '' : textOf(path)
    if (!this.#isBelow(file) || file.endsWith('-shm')) return undefined
    return { kind: 'unseen', what: `${file} in memory` }
  }

  #copied(name: string, args: string, length: number): Happened | undefined {
    const [first, second] = [...args.matchAll(/\d+<([^>]*)>/g)].map(([, path = '']) => textOf(path))
    const [from = '', path = ''] = name === 'sendfile' ? [second, first] : [first, second]
    return this.#isBelow(path) ? { kind: 'copied', from, path, length } : undefined
  }

  #resized(call: Call): Happened | undefined {
    const { name, args } = call
    const path = name === 'truncate' ? this.#paths(call)[0] : this.#handle(args)
    if (path === undefined) return undefined
    const numbers = args.split(', ').map(Number)
    if (name === 'fallocate') return { kind: 'resized', path, length: numbers.at(-2)! + numbers.at(-1)!, grows: true }
    return { kind: 'resized', path, length: numbers.at(-1)!, grows: false }
  }

  #changedNames(call: Call): Happened | undefined {
    const { name } = call
    const [one, two] = this.#paths(call)
    if (name.startsWith('rename') || name.startsWith('link')) {
      if (two === undefined || one === undefined) return undefined
      return { kind: name.startsWith('rename') ? 'renamed' : 'linked', from: one, path: two }
    }
    if (one === undefined || MOVING.split(',').includes(name)) return undefined
    return { kind: name.startsWith('mkdir') ? 'made-folder' : 'removed', path: one }
  }

  /** The first argument, if it is the handle of something below the folder that still has a name. */
  #handle(args: string): string | undefined {
    const path = /^\d+<([^>]*)>/.exec(args)?.[1]
    if (path === undefined) return undefined
    const file = textOf(path)
    return this.#isBelow(file) && !args.startsWith(' (deleted)', path.length) ? file : undefined
  }

  /** The paths among the arguments: each one below the folder, made absolute by the folder that stands before it. */
  #paths({ args, cwd }: Call): string[] {
    return [...args.matchAll(/(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:\\x[0-9a-f]{2})*)"/g)]
      .map(([, folder, path = '']) => absolute(folder === undefined ? cwd : textOf(folder), textOf(path)))
      .filter((path) => this.#isBelow(path))
  }

  #isBelow(path: string): boolean {
    return path.startsWith(`${this.#root}/`) || path === this.#root
  }
}

/** The last number of a call that has a mode; in octal. */
const isExecutable = (args: string) => /, 0?[0-7]*[1357][0-7]{2}$/.test(args)

/** All texts among the arguments, one after the other: those of a `writev` are one write. */
function bytesIn(args: string): Buffer {
  return Buffer.concat(
    [...args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, hex = '']) => Buffer.from(hex.replaceAll('\\x', ''), 'hex')),
  )
}
