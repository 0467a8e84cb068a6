import { join } from 'node:path'

import type { TestProject } from 'vitest/node'

import { builtProgram } from './built-program.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The command line, built of these sources; undefined where the tests use the sources themselves. */
    program: string | undefined
  }
}

/** For suites that start hundreds of commands: built, each takes two thirds of the time. */
export default async function setup(project: TestProject): Promise<void> {
  project.provide('program', join(await builtProgram(), 'bin/holdfast'))
}
