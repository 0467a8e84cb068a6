/**
 * Writes the pages that follow from the code: commands, configuration, HTTP routes, errors, promises.
 *
 *   npm run docs            writes those that are stale
 *   npm run docs -- --check  names them
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { commandsPage } from './docs/commands.ts'
import { configPage } from './docs/config.ts'
import { errorsPage } from './docs/errors.ts'
import { httpPage } from './docs/http.ts'
import { limitsPage } from './docs/limits.ts'
import { promisesPage } from './docs/promises.ts'

/** By their path from the root. */
async function writtenPages(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ['docs/reference/commands.md', await commandsPage()],
    ['docs/reference/config.md', configPage()],
    ['docs/reference/http.md', httpPage()],
    ['docs/reference/errors.md', errorsPage()],
    ['docs/reference/limits.md', limitsPage()],
    ['docs/promises.md', promisesPage()],
  ])
}

/** The paths of those that are not as they would be written now. */
async function write(isCheck: boolean): Promise<string[]> {
  const pages = [...(await writtenPages())].map(([path, text]) => ({ path, text, file: join(ROOT, path) }))
  const stale = pages.filter(({ file, text }) => !existsSync(file) || readFileSync(file, 'utf8') !== text)
  for (const { file, text } of isCheck ? [] : stale) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  return stale.map(({ path }) => path)
}

const ROOT = join(import.meta.dirname, '..')
const isCheck = process.argv.includes('--check')
const stale = await write(isCheck)
process.stdout.write(stale.map((path) => `${path}\n`).join(''))
if (isCheck && stale.length > 0) process.exitCode = 1
