import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

import { inject } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** What to start instead of this program of the tests: the same, built. */
export function builtFixture(source: URL): string {
  const name = relative(ROOT, fileURLToPath(source)).replace(/\.ts$/, '.js')
  const built = join(inject('fixtures'), 'dist', name)
  if (!existsSync(built)) throw new Error(`${name} is not built: say so in test/support/fixtures.ts`)
  return built
}
