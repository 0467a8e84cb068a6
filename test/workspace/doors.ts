import { Installation } from '../support/holdfast.ts'
import type { Ended } from '../support/holdfast.ts'
import { Repository } from '../support/repository.ts'
import { typed } from '../server/in-process.ts'

export interface Listed {
  readonly runId: string
  readonly state: string
  readonly agent: string
  readonly sha?: string
  readonly changed: readonly string[]
  readonly [field: string]: unknown
}

/** The check of a person who wants the total to be 3. */
export const CHECK = '#!/bin/sh\necho "the total is $(cat total.txt)"\ntest "$(cat total.txt)" = 3\n'

/** A person at their command line, with a repository of their own. */
export class Person {
  readonly place: Installation
  readonly repo: Repository

  constructor(place = new Installation(), repo = new Repository({ 'total.txt': '1\n', 'check.sh': CHECK })) {
    this.place = place
    this.repo = repo
  }

  /** In this process: starting a program for each command would be most of the time. */
  type(...args: readonly string[]): Promise<Ended> {
    return typed(args, { HOLDFAST_HOME: this.place.home })
  }

  async json<T>(...args: readonly string[]): Promise<T> {
    return JSON.parse((await this.type('--json', ...args)).stdout) as T
  }

  /** A script in a transaction. */
  transact(script: string, ...flags: readonly string[]): Promise<Ended> {
    return this.#run(['--workspace-mode', 'transaction', ...flags], script)
  }

  /** The same, watched and not held back. */
  shadow(script: string, ...flags: readonly string[]): Promise<Ended> {
    return this.#run(flags, script)
  }

  #run(flags: readonly string[], script: string): Promise<Ended> {
    return this.type('run', '--workspace', this.repo.folder, ...flags, '--', 'sh', '-c', script)
  }

  /** The newest first. */
  async workspaces(): Promise<readonly Listed[]> {
    return this.json<readonly Listed[]>('workspace', 'list')
  }

  async newest(): Promise<Listed> {
    return (await this.workspaces())[0]!
  }
}
