import { defineConfig } from 'vitest/config'

const suite = (name: string, include: string[], testTimeout = 20_000) => ({
  test: { name, include, testTimeout, hookTimeout: 60_000 },
})

export default defineConfig({
  test: {
    projects: [
      suite('unit', ['src/**/*.test.ts']),
      suite('tidy', ['test/tidy/**/*.test.ts', 'test/promises.test.ts', 'test/claims.test.ts'], 60_000),
      suite('contract', ['test/contract/**/*.test.ts']),
      suite('processes', ['test/processes/**/*.test.ts'], 60_000),
      suite('migration', ['test/migration/**/*.test.ts']),
      suite('race', ['test/race/**/*.test.ts'], 120_000),
      suite('crash', ['test/crash/**/*.test.ts'], 300_000),
      suite('claims', ['test/claims/**/*.test.ts'], 120_000),
      suite('story', ['test/story/**/*.test.ts'], 300_000),
    ],
  },
})
