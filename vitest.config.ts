import { fileURLToPath } from 'node:url'

import { defineConfig } from 'vitest/config'
import { BaseSequencer } from 'vitest/node'
import type { TestSpecification } from 'vitest/node'

const suite = (name: string, include: string[], testTimeout = 20_000) => ({
  test: { name, include, testTimeout, hookTimeout: 60_000 },
})

/** Files that share a worker: they leave nothing behind in it, and starting one for each is half of their time. */
const quick = (name: string, include: string[], testTimeout?: number) => {
  const { test } = suite(name, include, testTimeout)
  return { test: { ...test, isolate: false } }
}
/** A suite that looks at the page as it is served. */
const withPage = (each: ReturnType<typeof suite>) => ({
  test: { ...each.test, globalSetup: ['test/support/built-dashboard.ts'] },
})

/** What takes longest, begun first: at the end nobody waits for one file. */
const LONGEST = [
  'test/tidy/docs-run.test.ts',
  'test/crash/transitions-sqlite.test.ts',
  'test/crash/transitions-postgres.test.ts',
  'test/story/killed.test.ts',
  'test/crash/killed-for-real.test.ts',
  'test/crash/killed-agent.test.ts',
  'test/race/terminal-postgres.test.ts',
  'test/workspace/transaction.test.ts',
  'test/workspace/matrix-killed.test.ts',
  'test/workspace/git-land-killed.test.ts',
  'test/claims/workspaces.test.ts',
  'test/schedule/matrix.test.ts',
  'test/schedule/killed.test.ts',
  'test/faults/simulation.test.ts',
  'test/library/function-doubts.test.ts',
  'test/library/functions.test.ts',
  'test/mcp/waits.test.ts',
  'test/mcp/tools.test.ts',
  'test/ai-sdk/killed.test.ts',
  'test/race/schedules.test.ts',
  'test/story/command-line.test.ts',
  'test/story/demo.test.ts',
  'test/clients/agent.test.ts',
]

/** Then the others as usual, and last what takes a moment each: with it the workers end together. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId, project }: TestSpecification) => {
      const index = LONGEST.findIndex((name) => moduleId.endsWith(name))
      if (index !== -1) return index
      return project.config.isolate ? LONGEST.length : LONGEST.length + 1
    }
    // oxlint-disable-next-line unicorn/no-array-sort -- it is none, and makes a new one.
    const usual = await super.sort(files)
    return usual.toSorted((a, b) => place(a) - place(b))
  }
}

// Hundreds of processes are started, and with their code compiled already each takes half the time.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('node_modules/.cache/holdfast', import.meta.url))

// The tests of the house rules need no database, and some others no command line: they do not wait for one.
const projects = process.argv.filter((_, index) => process.argv[index - 1] === '--project')
const isOnly = (...names: readonly string[]) => projects.length > 0 && projects.every((name) => names.includes(name))
const database = isOnly('tidy') ? [] : ['test/support/shared-postgres.ts']
const program = isOnly('tidy', 'unit', 'contract', 'loop') ? [] : ['test/support/own-program.ts']

export default defineConfig({
  test: {
    // Twice the cores that CI has: most tests wait for a process or a disk half of their time.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/memory-disk.ts', ...program, ...database],
    projects: [
      quick('unit', ['src/**/*.test.ts']),
      quick('tidy', ['test/tidy/**/*.test.ts', 'test/promises.test.ts', 'test/claims.test.ts'], 60_000),
      quick('contract', ['test/contract/**/*.test.ts']),
      suite('scale', ['test/scale/**/*.test.ts'], 120_000),
      quick('loop', ['test/loop/**/*.test.ts']),
      suite('decisions', ['test/decisions/**/*.test.ts'], 120_000),
      suite('processes', ['test/processes/**/*.test.ts'], 60_000),
      suite('model', ['test/model/**/*.test.ts'], 60_000),
      suite('tools', ['test/tools/**/*.test.ts'], 60_000),
      suite('library', ['test/library/**/*.test.ts'], 60_000),
      suite('ai-sdk', ['test/ai-sdk/**/*.test.ts'], 60_000),
      withPage(suite('server', ['test/server/**/*.test.ts'], 120_000)),
      withPage(suite('dashboard', ['test/dashboard/**/*.test.ts'], 120_000)),
      suite('hooks', ['test/hooks/**/*.test.ts'], 300_000),
      suite('clients', ['test/clients/**/*.test.ts'], 300_000),
      suite('mcp', ['test/mcp/**/*.test.ts'], 120_000),
      suite('schedule', ['test/schedule/**/*.test.ts'], 120_000),
      suite('inbox', ['test/inbox/**/*.test.ts'], 120_000),
      suite('workspace', ['test/workspace/**/*.test.ts'], 120_000),
      suite('migration', ['test/migration/**/*.test.ts']),
      suite('race', ['test/race/**/*.test.ts'], 120_000),
      suite('crash', ['test/crash/**/*.test.ts'], 300_000),
      suite('postgres', ['test/postgres/**/*.test.ts'], 300_000),
      suite('faults', ['test/faults/**/*.test.ts'], 120_000),
      suite('claims', ['test/claims/**/*.test.ts'], 120_000),
      suite('story', ['test/story/**/*.test.ts'], 300_000),
    ],
  },
})
