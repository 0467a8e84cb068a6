import { basename, dirname, relative } from 'node:path'

import type { Happened } from './trace.ts'

/*
 * What is on a disk for certain, and what was asked for since and may or may not have arrived. A file's bytes are certain after
 * its sync, a name after the sync of its folder; a sync of a file does nothing for its name. Bytes that were written out are certain
 * after the next sync of anything beside them: below the same folder of the root, as if each of those were a file system of its own. Of
 * what is not certain a power loss keeps anything.
 */

/** What was on the disk for certain before anything was recorded. */
export interface Before {
  readonly folders: readonly string[]
  readonly files?: ReadonlyMap<string, { readonly content: Buffer; readonly executable: boolean }>
}

/** One change of a file's bytes that is not certain yet. */
interface Change {
  readonly id: number
  readonly kind: 'write' | 'resize'
  readonly at: number
  readonly bytes: Buffer
  readonly length: number
}

class File {
  readonly id: number
  /** As it is for whoever reads it now. */
  size = 0
  certain: Buffer = Buffer.alloc(0)
  version = 0
  pending: Change[] = []
  executable: boolean
  /** Of its changes up to this one none is only in memory. */
  writtenOut = 0

  constructor(id: number, executable = false) {
    this.id = id
    this.executable = executable
  }
}

/** A link with a path in it. */
class Pointer {
  readonly target: string

  constructor(target: string) {
    this.target = target
  }
}

class Folder {
  readonly entries = new Map<string, Node>()
}

type Node = File | Folder | Pointer

/** One change of names that is not certain yet. */
interface Renaming {
  readonly id: number
  readonly changes: readonly { readonly folder: Folder; readonly name: string; readonly node: Node | undefined }[]
}

/** Which of the uncertain changes a power loss keeps; `torn`: how much of one write. */
export interface Choice {
  readonly fault: string
  readonly keeps: (change: number) => boolean
  readonly torn?: { readonly change: number; readonly bytes: number; readonly zeros?: boolean }
}

/** Files by their paths below the root, each as it would be read. */
export interface State {
  readonly key: string
  readonly folders: readonly string[]
  readonly files: ReadonlyMap<string, () => Buffer>
  /** Of those: the path that is another name of the same file. */
  readonly second: ReadonlyMap<string, string>
  readonly executables: ReadonlySet<string>
  readonly pointers: ReadonlyMap<string, string>
}

export class Disk {
  readonly #root: string
  /** Each folder by its path; names that are certain. */
  readonly #certain = new Folder()
  readonly #now = new Map<string, Node>()
  #renamings: Renaming[] = []
  readonly #syncs = new Map<
    number,
    {
      readonly changes: ReadonlySet<number>
      readonly renamings: ReadonlySet<number>
      readonly beside: readonly { readonly file: File; readonly until: number }[]
    }
  >()
  readonly #writtenOut = new Map<File, string>()
  #ids = 0

  /** The root was there before. */
  constructor(root: string, { folders, files = new Map() }: Before) {
    this.#root = root
    this.#now.set(root, this.#certain)
    for (const path of folders) this.#wasThere(`${root}/${path}`, new Folder())
    for (const [path, { content: bytes, executable }] of files) {
      const file = new File((this.#ids += 1), executable)
      file.certain = bytes
      file.size = bytes.length
      this.#wasThere(`${root}/${path}`, file)
    }
  }

  #wasThere(path: string, node: Node): void {
    this.#folder(dirname(path)).entries.set(basename(path), node)
    this.#now.set(path, node)
  }

  /** The last change that is not certain, if it is one of bytes. */
  lastWrite(): { readonly id: number; readonly at: number; readonly length: number } | undefined {
    const last = this.uncertain().changes.at(-1)
    return last?.kind === 'write' && last.id === this.#ids
      ? { id: last.id, at: last.at, length: last.bytes.length }
      : undefined
  }

  uncertain(): { readonly changes: readonly Change[]; readonly renamings: readonly Renaming[] } {
    const files = new Set([...this.#now.values()].filter((node) => node instanceof File))
    for (const { changes } of this.#renamings) for (const { node } of changes) if (node instanceof File) files.add(node)
    const changes = [...files].flatMap(({ pending }) => pending).toSorted((a, b) => a.id - b.id)
    return { changes, renamings: this.#renamings }
  }

  /** Whether something changed that a power loss could show. */
  take(happened: Happened): boolean {
    if ('path' in happened && isWithoutMeaning(relative(this.#root, happened.path))) return false
    switch (happened.kind) {
      case 'opened':
        return this.#open(happened)
      case 'wrote':
        return this.#write(happened.path, happened.bytes, happened.at)
      case 'copied':
        return this.#write(happened.path, this.#read(happened.from).subarray(0, happened.length), undefined)
      case 'resized':
        return this.#resize(happened.path, happened.length, happened.grows)
      case 'written-out':
        return this.#writeOut(happened.path)
      case 'sync-asked':
        return this.#askSync(happened.path, happened.sync)
      case 'synced':
        return this.#sync(happened.path, happened.sync)
      case 'renamed':
        return this.#rename(happened.from, happened.path)
      case 'linked':
        return this.#name(happened.path, this.#there(happened.from))
      case 'pointed':
        return this.#name(happened.path, new Pointer(happened.target))
      case 'allowed':
        return this.#allow(happened.path, happened.executable)
      case 'removed':
        return this.#name(happened.path, undefined)
      case 'made-folder':
        return this.#name(happened.path, new Folder())
      case 'said':
      case 'effect':
      case 'unseen':
        return false
    }
  }

  /** What a power loss leaves with this choice. */
  state({ keeps, torn }: Choice): State {
    const names = new Map<Folder, Map<string, Node>>()
    const entriesOf = (folder: Folder) => {
      const known = names.get(folder) ?? new Map(folder.entries)
      names.set(folder, known)
      return known
    }
    for (const { id, changes } of this.#renamings)
      if (keeps(id)) for (const { folder, name, node } of changes) setOrDelete(entriesOf(folder), name, node)
    const found = new Found()
    const visit = (folder: Folder, path: string) => {
      for (const [name, node] of entriesOf(folder)) {
        const place = path === '' ? name : `${path}/${name}`
        if (node instanceof File) {
          const kept = node.pending.filter(({ id }) => keeps(id) || id === torn?.change)
          found.file(place, node, kept, torn)
        } else if (node instanceof Pointer) {
          found.pointers.set(place, node.target)
          found.keys.push(`${place}>${node.target}`)
        } else {
          found.folders.push(place)
          found.keys.push(`${place}/`)
          visit(node, place)
        }
      }
    }
    visit(this.#certain, '')
    const tear = torn === undefined ? '' : `~${torn.change}:${torn.bytes}:${torn.zeros === true}`
    const { keys, ...state } = found
    return { ...state, key: `${keys.toSorted().join('|')}${tear}` }
  }

  #open({ path, creates, empties, executable }: Extract<Happened, { kind: 'opened' }>): boolean {
    const known = this.#now.get(path)
    if (known === undefined) return creates && this.#name(path, new File((this.#ids += 1), executable))
    return empties && known instanceof File && known.size > 0 && this.#resize(path, 0, false)
  }

  #write(path: string, bytes: Buffer, at: number | undefined): boolean {
    const file = this.#file(path)
    const place = at ?? file.size
    file.pending.push({ id: (this.#ids += 1), kind: 'write', at: place, bytes, length: place + bytes.length })
    file.size = Math.max(file.size, place + bytes.length)
    return true
  }

  #resize(path: string, length: number, grows: boolean): boolean {
    const file = this.#file(path)
    if (grows && length <= file.size) return false
    file.pending.push({ id: (this.#ids += 1), kind: 'resize', at: 0, bytes: Buffer.alloc(0), length })
    file.size = length
    return true
  }

  /** That comes with the file: of what we do nothing depends on more. */
  #allow(path: string, executable: boolean): false {
    const node = this.#now.get(path)
    if (node instanceof File) node.executable = executable
    return false
  }

  #writeOut(path: string): false {
    const file = this.#file(path)
    file.writtenOut = this.#ids
    this.#writtenOut.set(file, this.#fileSystem(path))
    return false
  }

  #fileSystem(path: string): string {
    return relative(this.#root, path).split('/')[0] ?? ''
  }

  #read(path: string): Buffer {
    const file = this.#file(path)
    return content(file.certain, file.pending, undefined)
  }

  #askSync(path: string, sync: number): boolean {
    const node = this.#now.get(path)
    const changes = new Set(node instanceof File ? node.pending.map(({ id }) => id) : [])
    const renamings = this.#renamings.filter(({ changes: all }) => all.some(({ folder }) => folder === node))
    const beside = [...this.#writtenOut]
      .filter(([, where]) => where === this.#fileSystem(path))
      .map(([file]) => ({ file, until: file.writtenOut }))
    this.#syncs.set(sync, { changes, renamings: new Set(renamings.map(({ id }) => id)), beside })
    return false
  }

  #sync(path: string, sync: number): boolean {
    const asked = this.#syncs.get(sync)
    const node = this.#now.get(path)
    if (asked === undefined || node === undefined) return false
    this.#syncs.delete(sync)
    if (node instanceof File) this.#settle(node, asked.changes)
    for (const { file, until } of asked.beside) {
      this.#settle(file, new Set(file.pending.flatMap(({ id }) => (id <= until ? [id] : []))))
      this.#writtenOut.delete(file)
    }
    for (const { id, changes } of this.#renamings)
      if (asked.renamings.has(id))
        for (const { folder, name, node: named } of changes) setOrDelete(folder.entries, name, named)
    this.#renamings = this.#renamings.filter(({ id }) => !asked.renamings.has(id))
    return asked.changes.size + asked.renamings.size + asked.beside.length > 0
  }

  #settle(file: File, changes: ReadonlySet<number>): void {
    if (changes.size === 0) return
    const [settled, rest] = [
      file.pending.filter(({ id }) => changes.has(id)),
      file.pending.filter(({ id }) => !changes.has(id)),
    ]
    file.certain = content(file.certain, settled, undefined)
    file.pending = rest
    file.version += 1
  }

  #rename(from: string, path: string): boolean {
    const node = this.#there(from)
    const changes = [
      { folder: this.#folder(dirname(from)), name: basename(from), node: undefined },
      { folder: this.#folder(dirname(path)), name: basename(path), node },
    ]
    this.#renamings.push({ id: (this.#ids += 1), changes })
    for (const [known, each] of this.#now)
      if (known === from || known.startsWith(`${from}/`)) {
        this.#now.delete(known)
        this.#now.set(path + known.slice(from.length), each)
      }
    return true
  }

  #name(path: string, node: Node | undefined): boolean {
    if (node === undefined) this.#there(path)
    const change = { folder: this.#folder(dirname(path)), name: basename(path), node }
    this.#renamings.push({ id: (this.#ids += 1), changes: [change] })
    setOrDelete(this.#now, path, node)
    return true
  }

  #there(path: string): Node {
    const node = this.#now.get(path)
    if (node === undefined) throw new Error(`the trace does something to ${path}, which is not there`)
    return node
  }

  #file(path: string): File {
    const node = this.#now.get(path)
    if (node instanceof File) return node
    throw new Error(`the trace writes to ${path}, which nobody opened`)
  }

  #folder(path: string): Folder {
    const node = this.#now.get(path)
    if (node instanceof Folder) return node
    throw new Error(`the trace names something in ${path}, which nobody made`)
  }
}

/** Made anew by whoever opens the database, or good for living processes only: signs, pipes, compiled code. */
export const isWithoutMeaning = (path: string) => /-shm$|-wake$|\.pipe$|\/cache\//.test(path)

/** What is found on a disk that lost its power. */
class Found implements Omit<State, 'key'> {
  readonly keys: string[] = []
  readonly folders: string[] = []
  readonly files = new Map<string, () => Buffer>()
  readonly second = new Map<string, string>()
  readonly executables = new Set<string>()
  readonly pointers = new Map<string, string>()
  readonly #first = new Map<File, string>()

  file(place: string, file: File, kept: readonly Change[], torn: Choice['torn']): void {
    this.files.set(place, () => content(file.certain, kept, torn))
    this.keys.push(`${place}=${file.id}.${file.version}:${kept.map(({ id }) => id).join(',')}`)
    const first = this.#first.get(file)
    if (first !== undefined) this.second.set(place, first)
    else this.#first.set(file, place)
    if (file.executable) this.executables.add(place)
  }
}

function setOrDelete<K, V>(map: Map<K, V>, key: K, value: V | undefined): false {
  if (value === undefined) map.delete(key)
  else map.set(key, value)
  return false
}

function content(certain: Buffer, changes: readonly Change[], torn: Choice['torn']): Buffer {
  let size = certain.length
  let bytes = Buffer.alloc(Math.max(size, ...changes.map(({ length }) => length)))
  certain.copy(bytes)
  for (const { id, kind, at, bytes: written, length } of changes) {
    if (kind === 'resize') {
      bytes.fill(0, length)
      size = length
      continue
    }
    const isTorn = torn?.change === id
    const kept = isTorn ? written.subarray(0, torn.bytes) : written
    kept.copy(bytes, at)
    // The new length arrived, and the bytes did not.
    if (isTorn && torn.zeros === true) bytes.fill(0, at + kept.length, at + written.length)
    size = Math.max(size, at + (isTorn && torn.zeros === true ? written : kept).length)
  }
  return (bytes = bytes.subarray(0, size))
}
