import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'

import { isDashboardFresh } from '../../scripts/build-dashboard.ts'
import type { Env } from '../../src/server/env.ts'
import { readPage, servePage } from '../../src/server/page.ts'
import { temporaryFolder } from '../support/engines.ts'

const HTML = { headers: { accept: 'text/html,*/*' } }

function served(files: Readonly<Record<string, string>>) {
  const folder = `${temporaryFolder()}/`
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  const app = new Hono<Env>()
  const warnings: string[] = []
  servePage(app, readPage(pathToFileURL(folder)), (text) => void warnings.push(text))
  return { app, warnings }
}

describe('the files of the page', () => {
  test('without a build the daemon works, says what to do, and so does its address', async () => {
    const { app, warnings } = served({})
    const answer = await app.request('/approvals/apr_1', HTML)
    expect(answer.status).toBe(503)
    expect(await answer.text()).toContain('npm run dashboard')
    expect(warnings).toEqual([expect.stringContaining('npm run dashboard')])
  })

  test('every place is the page, also of a thread with a dot in its name; files are files, and what is not there is not', async () => {
    const { app, warnings } = served({ 'index.html': 'the page', 'assets/a-1.js': 'the script' })
    for (const path of ['/', '/runs', '/threads/my.thread', '/nowhere']) {
      expect(await (await app.request(path, HTML)).text()).toBe('the page')
    }
    const script = await app.request('/assets/a-1.js', HTML)
    expect(script.headers.get('cache-control')).toContain('immutable')
    expect((await app.request('/assets/gone.js', HTML)).status).toBe(404)
    expect((await app.request('/api/v1/gone', HTML)).status).toBe(404)
    expect((await app.request('/runs')).status).toBe(404)
    expect(warnings).toEqual([])
  })

  test('it is built anew when a source is newer, and not otherwise', () => {
    const root = temporaryFolder()
    const file = (path: string, at: number) => {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), '')
      utimesSync(join(root, path), at, at)
      utimesSync(dirname(join(root, path)), at, at)
    }
    for (const path of [
      'dashboard/src/app.tsx',
      'dashboard/public/icon.svg',
      'src/api/client.ts',
      'src/base/errors.ts',
    ]) {
      file(path, 1000)
    }
    for (const path of ['dashboard/index.html', 'dashboard/vite.config.ts']) file(path, 1000)
    expect(isDashboardFresh(root)).toBe(false)
    file('dashboard/dist/index.html', 2000)
    expect(isDashboardFresh(root)).toBe(true)
    file('dashboard/src/app.tsx', 3000)
    expect(isDashboardFresh(root)).toBe(false)
  })
})
