import { mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { typed } from '../server/in-process.ts'
import { until } from '../support/holdfast.ts'
import { Repository } from '../support/repository.ts'
import { ROOT } from '../tidy/tree.ts'
import type { Daemon } from './support.ts'
import { inBrowser, reaches, send, sharedTown, visit } from './support.ts'

const AXE = readFileSync(createRequire(join(ROOT, 'dashboard/package.json')).resolve('axe-core/axe.min.js'), 'utf8')

/** A busy day: one of everything that a page could show. */
async function fill(daemon: Daemon): Promise<readonly string[]> {
  const runs = await Promise.all(
    ['mailer', 'payer', 'tester', 'slow', 'lead', 'clerk', 'broken', 'limited'].map(async (agent) => {
      const { runId, threadId } = await send(daemon, agent, `please, ${HOSTILE}`)
      return { agent, runId, threadId }
    }),
  )
  const of = (agent: string) => runs.find((each) => each.agent === agent)!
  await Promise.all(['mailer', 'payer'].map((agent) => reaches(daemon, of(agent).runId, 'parked')))
  await Promise.all(['tester', 'clerk'].map((agent) => reaches(daemon, of(agent).runId, 'succeeded')))
  await daemon.api.call('threads.remove', { thread: of('slow').threadId, force: true }).catch(() => undefined)
  const { items } = await daemon.api.call('approvals.list', {})
  return [
    '/',
    '/approvals',
    `/approvals/${items[0]!.id}`,
    '/doubts',
    '/threads',
    `/threads/${of('lead').threadId}`,
    `/threads/${of('mailer').threadId}`,
    '/runs',
    `/runs/${of('clerk').runId}`,
    `/runs/${of('payer').runId}`,
    `/runs/${of('tester').runId}`,
    `/runs/${await discarded(daemon)}`,
    '/workspaces',
    '/inbox',
    '/inbox?state=consumed',
    '/schedules',
    '/quotas',
    '/events',
    '/events/3',
    '/settings',
    '/nowhere',
  ]
}

/** A run whose files, and what its check said of them, are as hostile as anything else. */
async function discarded({ home }: Daemon): Promise<string> {
  const folder = join(home, '..', 'app')
  mkdirSync(folder)
  const repo = new Repository({ 'total.txt': '1\n' }, folder)
  const flags = ['--workspace', repo.folder, '--workspace-mode', 'transaction', '--check', 'cat a.txt; exit 1']
  const script = `printf '%s' "$WORDS" > a.txt; cp a.txt "$NAME"`
  const env = { HOLDFAST_HOME: home, WORDS: HOSTILE, NAME: '<i>\u202e.txt' }
  const { stdout } = await typed(['--json', 'run', ...flags, '--', 'sh', '-c', script], env)
  return (JSON.parse(stdout) as { id: string }).id
}

/** A word that is wider than a phone, markup, a script, what turns the direction of reading, what cannot be seen, and what a terminal obeys. */
const HOSTILE = `${'Donaudampfschifffahrt'.repeat(12)}<img src=x onerror="document.title=1"><script>document.title=2</script>\u202e\u200b\u001b[31m`

const serious = async (page: Page) =>
  (await page.evaluate(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map(({ html, any }) => html.slice(0, 160) + ' ' + (any[0]?.message ?? '')).join(' | ')))`)) as string[]

/** It is there, and what it asked for has come. */
async function settled(page: Page): Promise<void> {
  await page.waitForSelector('main h1')
  await until('nothing is loading', async () =>
    (await page.locator('[aria-busy=true]').count()) === 0 ? true : undefined,
  )
}

/** How much is beyond the right edge of the page, or of its content, which scrolls by itself. */
const BEYOND = `Math.max(...[document.documentElement, document.getElementById('main')].map((box) => box.scrollWidth - box.clientWidth))`

/** Text that one does not see, anywhere in the page: it is to be shown as what it is. */
const UNSEEN = `document.body.innerText.match(/[[\\p{Cc}\\p{Cf}\\p{Bidi_Control}\\p{Default_Ignorable_Code_Point}]--[\\n\\t\\u{fe0f}]]/v)`

inBrowser('every page', (open) => {
  const town = sharedTown()
  let paths: readonly string[] | undefined
  const filled = async () => (paths ??= await fill(town()))

  for (const [theme, width] of [
    ['light', 1280],
    ['dark', 390],
  ] as const) {
    test(`${theme}, ${width} wide: no serious fault for whoever cannot see it, nothing beyond the edge, no text that is markup or hidden`, async () => {
      const places = await filled()
      const page = await open(town(), { theme, width })
      await page.evaluate(AXE)
      const faults: string[] = []
      for (const path of places) {
        await visit(page, path)
        await settled(page)
        faults.push(...(await serious(page)).map((fault) => `${path} ${fault}`))
        const wide = Number(await page.evaluate(BEYOND))
        if (wide > 0) faults.push(`${path} is ${wide} too wide`)
        if ((await page.evaluate(UNSEEN)) !== null) faults.push(`${path} shows what one does not see`)
        // One image is ours: the mark beside the name.
        const strangers = await page.locator('#app script, #app img:not([src="/icon.svg"])').count()
        if (strangers > 0) faults.push(`${path} has markup that somebody wrote`)
      }
      expect(faults).toEqual([])
      expect(await page.title()).toMatch(/Holdfast$/)
    })
  }
})

describe('what is shipped', () => {
  const built = join(ROOT, 'dashboard/dist')
  const files = readdirSync(built, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

  test('all of it is under 120 kB when it is packed', () => {
    const bytes = files.reduce((sum, file) => sum + gzipSync(readFileSync(file)).length, 0)
    expect(files.length).toBeGreaterThan(4)
    expect(bytes).toBeLessThan(120_000)
  })

  test('it has no script or style inside the page, and nothing from elsewhere', () => {
    const page = readFileSync(join(built, 'index.html'), 'utf8')
    expect(page).not.toMatch(/<script(?![^>]*\ssrc=")|<style|\sstyle=|\son\w+=/)
    expect(page).not.toMatch(/(src|href)="(?!\/)/)
  })
})
