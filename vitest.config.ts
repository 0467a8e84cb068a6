import { fileURLToPath } from 'node:url'

import { defineConfig } from 'vitest/config'
import { BaseSequencer } from 'vitest/node'
import type { TestSpecification } from 'vitest/node'

const suite = (name: string, include: string[], testTimeout = 20_000) => ({
  test: { name, include, testTimeout, hookTimeout: 60_000 },
})

/**
 * Files that share a worker, since starting one for each is half of their time: they leave nothing behind in it. Others do: the
 * secrets that a file made known are hidden in all that follow.
 */
const quick = (name: string, include: string[], testTimeout?: number) => {
  const { test } = suite(name, include, testTimeout)
  return { test: { ...test, isolate: false } }
}
/** A suite that looks at the page as it is served. */
const withPage = (each: ReturnType<typeof suite>) => ({
  test: { ...each.test, globalSetup: ['test/support/built-dashboard.ts'] },
})

/**
 * What takes longest, begun first: the suites in the order of these, and these before their others. At the end nobody waits for
 * one file.
 */
const LONGEST = [
  'test/tidy/docs-run.test.ts',
  'test/crash/transitions-sqlite.test.ts',
  'test/crash/killed-agent.test.ts',
  'test/crash/transitions-postgres.test.ts',
  'test/crash/killed-for-real.test.ts',
  'test/workspace/transaction.test.ts',
  'test/workspace/matrix-killed.test.ts',
  'test/workspace/git-land-killed.test.ts',
  'test/workspace/takeover.test.ts',
  'test/workspace/matrix-git.test.ts',
  'test/story/killed.test.ts',
  'test/story/machines.test.ts',
  'test/story/command-line.test.ts',
  'test/story/mcp.test.ts',
  'test/story/demo.test.ts',
  'test/library/package.test.ts',
  'test/claims/bench.test.ts',
  'test/claims/workspaces.test.ts',
  'test/claims/patience.test.ts',
  'test/faults/power-loss.test.ts',
  'test/faults/zombies.test.ts',
  'test/dashboard/looks.test.ts',
  'test/dashboard/work.test.ts',
  'test/dashboard/long-list.test.ts',
  'test/dashboard/workspaces.test.ts',
  'test/race/terminal-postgres.test.ts',
  'test/race/gates.test.ts',
  'test/race/terminal-sqlite.test.ts',
  'test/postgres/cut-commit.test.ts',
  'test/postgres/terminated.test.ts',
  'test/postgres/restart.test.ts',
  'test/processes/stop.test.ts',
  'test/processes/crash.test.ts',
  'test/tools/command-tool.test.ts',
  'test/ai-sdk/durable.test.ts',
  'test/ai-sdk/killed.test.ts',
  'test/decisions/killed-desk.test.ts',
  'test/decisions/hostile.test.ts',
  'test/schedule/cli.test.ts',
  'test/schedule/killed.test.ts',
  'test/hooks/handler.test.ts',
  'test/hooks/waiter.test.ts',
  'test/inbox/drain.test.ts',
  'test/mcp/waits.test.ts',
  'test/clients/agent.test.ts',
  'test/server/daemon.test.ts',
]

/** Their files take a moment each: with them the workers end together. */
const BRIEF = ['loop', 'contract', 'unit']

/** Suite by suite: a worker goes on with files of its own suite only. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- it is none, and makes a new one.
    const usual = await super.sort(files)
    const suites = Map.groupBy(usual, ({ project }) => project.name)
    const rank = (name: string, specs: readonly TestSpecification[]) =>
      BRIEF.includes(name) ? LONGEST.length + 1 + BRIEF.indexOf(name) : Math.min(...specs.map(placeOf))
    return [...suites]
      .toSorted(([a, these], [b, those]) => rank(a, these) - rank(b, those))
      .flatMap(([, specs]) => specs.toSorted((a, b) => placeOf(a) - placeOf(b)))
  }
}

function placeOf({ moduleId }: TestSpecification): number {
  const index = LONGEST.findIndex((name) => moduleId.endsWith(name))
  return index === -1 ? LONGEST.length : index
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
      withPage(quick('dashboard', ['test/dashboard/**/*.test.ts'], 120_000)),
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
