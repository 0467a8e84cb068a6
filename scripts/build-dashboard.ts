import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** What the built files are made of, from the root of the clone. The API is the part that both sides share. */
const SOURCES = [
  'dashboard/src',
  'dashboard/public',
  'dashboard/index.html',
  'dashboard/vite.config.ts',
  'src/api',
  'src/base/errors.ts',
]
const BUILT = 'dashboard/dist/index.html'

function newestIn(path: string): number {
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.mtimeMs
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => newestIn(join(path, name))))
}

/** Whether there is a build that is newer than everything it was made of. */
export function isDashboardFresh(root: string): boolean {
  if (!existsSync(join(root, BUILT))) return false
  return statSync(join(root, BUILT)).mtimeMs > Math.max(...SOURCES.map((path) => newestIn(join(root, path))))
}

export async function buildDashboard(root: string): Promise<void> {
  const { build } = await import('vite')
  await build({ configFile: join(root, 'dashboard/vite.config.ts'), logLevel: 'warn' })
}
