import { join } from 'node:path'

import type { TestProject } from 'vitest/node'

import { builtFixtures, builtProgram } from './built-program.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The command line, built of these sources. */
    program: string
    /** The folder of what the tests start and kill, built. */
    fixtures: string
  }
}

/** Hundreds of processes are started, and built, each takes two thirds of the time. */
export default async function setup(project: TestProject): Promise<void> {
  const [program, fixtures] = await Promise.all([builtProgram(), builtFixtures()])
  project.provide('program', join(program, 'bin/holdfast'))
  project.provide('fixtures', fixtures)
}
