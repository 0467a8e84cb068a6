import type { TestProject } from 'vitest/node'

import { PostgresServer } from './postgres-server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A PostgreSQL for all tests of this run; each makes schemas of its own in it. */
    postgres: string
  }
}

/** HOLDFAST_TEST_POSTGRES names a server to use instead of the one that the tests bring along. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const given = process.env.HOLDFAST_TEST_POSTGRES
  if (given !== undefined) {
    project.provide('postgres', given)
    return undefined
  }
  const server = await PostgresServer.create({ fsync: false })
  project.provide('postgres', server.url())
  return () => server.stop()
}
