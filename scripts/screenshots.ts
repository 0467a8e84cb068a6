/**
 * Takes the pictures of the dashboard that the docs show: a real daemon with agents that follow a script, a real browser, light
 * and dark.
 *
 *   npm run screenshots      (needs chromium: /usr/bin/chromium, or what HOLDFAST_CHROMIUM names)
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { chromium } from 'playwright-core'
import type { Browser } from 'playwright-core'

import { createClient } from '../src/api/client.ts'
import type { Api } from '../src/api/client.ts'
import { writeTown } from '../test/dashboard/town.ts'
import { buildDashboard, isDashboardFresh } from './build-dashboard.ts'

const ROOT = join(import.meta.dirname, '..')
const CHROMIUM = process.env['HOLDFAST_CHROMIUM'] ?? '/usr/bin/chromium'
/** What a page of the docs may weigh. */
const LARGEST_BYTES = 120_000
const PATIENCE_MS = 60_000

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (const deadline = Date.now() + PATIENCE_MS; Date.now() < deadline; await sleep(100)) {
    const found = await look().catch(() => undefined)
    if (found !== undefined) return found
  }
  throw new Error(`${what}: not within ${PATIENCE_MS / 1000} s`)
}

/** A day's work: something that waits for a yes, something that nobody knows, something done, something under way. */
async function work(api: Api): Promise<Readonly<Record<string, string>>> {
  const send = (agent: string, text: string) => api.call('messages.send', { agent, text })
  const sent = {
    clerk: await send('clerk', 'Two crates arrived at pier 7.'),
    lead: await send('lead', 'Get checkout 2026.11.3 out today.'),
    payer: await send('payer', 'Renew the plan of cus_7Q2.'),
    tester: await send('tester', 'Are the tests green?'),
  }
  await send('slow', 'Work through batch 12.')
  await send('limited', 'Summarise the week.')
  await api.call('schedules.add', {
    name: 'nightly-report',
    cron: '30 2 * * 1-5',
    zone: 'Europe/Berlin',
    agent: 'clerk',
    text: 'Write the report.',
  })
  const stateOf = async (thread: string) => (await api.call('runs.list', { thread })).items[0]
  const run = await until('the clerk is done', async () => {
    const found = await stateOf(sent.clerk.threadId)
    return found?.state === 'succeeded' ? found.id : undefined
  })
  const approval = await until('a write waits', async () => (await api.call('approvals.list', {})).items[0]?.id)
  const doubt = await until('a write is in doubt', async () => (await api.call('doubts.list', {})).items[0]?.id)
  await until('the tests have failed', async () => (await stateOf(sent.tester.threadId))?.endedAt)
  return {
    home: '/',
    approval: `/approvals/${approval}`,
    doubt: `/doubts/${doubt}`,
    run: `/runs/${run}`,
    thread: `/threads/${sent.lead.threadId}`,
  }
}

async function shoot(browser: Browser, api: Api, url: string, pages: Readonly<Record<string, string>>): Promise<void> {
  for (const theme of ['light', 'dark'] as const) {
    const context = await browser.newContext({
      colorScheme: theme,
      viewport: { width: 1180, height: 720 },
      reducedMotion: 'reduce',
    })
    const page = await context.newPage()
    const { code } = await api.call('session.code', {})
    await page.goto(`${url}/#code=${code}`)
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(`${url}${path}`)
      await page.waitForSelector('#connection[data-state=live]', { state: 'attached' })
      // The event stream never falls silent, so there is nothing to wait for but that what was fetched is drawn.
      if (name === 'home') await page.getByRole('button', { name: 'Hour' }).click()
      await sleep(2_000)
      const file = join(ROOT, 'docs/images', `${name}-${theme}.png`)
      await page.screenshot({ path: file })
      const { size } = statSync(file)
      process.stdout.write(`${name}-${theme}.png ${Math.round(size / 1000)} kB\n`)
      if (size > LARGEST_BYTES) throw new Error(`${file} is larger than ${LARGEST_BYTES / 1000} kB`)
    }
    await context.close()
  }
}

if (!existsSync(CHROMIUM)) throw new Error(`there is no browser at ${CHROMIUM}; set HOLDFAST_CHROMIUM`)
if (!isDashboardFresh(ROOT)) await buildDashboard(ROOT)
const folder = mkdtempSync(join(tmpdir(), 'holdfast-pictures-'))
const home = join(folder, 'home')
const config = writeTown(join(folder, 'town'))
const env = { ...process.env, HOLDFAST_HOME: home, HOLDFAST_STORE: '' }
const daemon = spawn(join(ROOT, 'bin/holdfast'), ['up', '--config', config, '--port', '0'], { env, stdio: 'ignore' })
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ['--headless', '--no-sandbox', '--disable-gpu'],
})
try {
  const read = (name: string) => readFileSync(join(home, name), 'utf8')
  const { url } = await until('the daemon is up', async () => JSON.parse(read('daemon.json')) as { url: string })
  const api = createClient({ url, token: read('token').trim() })
  await shoot(browser, api, url, await work(api))
} finally {
  await browser.close()
  daemon.kill('SIGKILL')
  await sleep(500)
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
