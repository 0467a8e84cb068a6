import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { chromium } from 'playwright-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, onTestFinished } from 'vitest'

import { createClient } from '../../src/api/client.ts'
import type { Api } from '../../src/api/client.ts'
import { temporaryFolder } from '../support/engines.ts'
import { Installation, until } from '../support/holdfast.ts'
import type { Running } from '../support/holdfast.ts'
import { writeTown } from './town.ts'

const CHROMIUM = process.env['HOLDFAST_CHROMIUM'] ?? '/usr/bin/chromium'
const FLAGS =
  '--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync --no-first-run'

const missing = !existsSync(CHROMIUM)
if (missing) {
  console.log(
    `No browser at ${CHROMIUM}: the dashboard's tests are skipped. Install chromium, or set HOLDFAST_CHROMIUM.`,
  )
}

export interface Daemon {
  readonly place: Installation
  readonly process: Running
  readonly url: string
  readonly api: Api
}

export interface Options {
  readonly theme?: 'light' | 'dark'
  readonly width?: number
  /** Where to begin. */
  readonly path?: string
}

/** However busy the machine is, nothing a page does may take longer. */
const PATIENCE_MS = 45_000

export type OpenPage = (daemon: Daemon, options?: Options) => Promise<Page>

/** Tests in one browser; each opens pages of its own, as somebody who has just signed in. */
export function inBrowser(title: string, tests: (open: OpenPage, browser: () => Browser) => void): void {
  describe.skipIf(missing)(title, () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS.split(' '), timeout: 55_000 })
    })
    afterAll(() => browser?.close())
    tests(
      (daemon, options) => openPage(browser, daemon, options),
      () => browser,
    )
  })
}

async function openPage(browser: Browser, daemon: Daemon, options: Options = {}): Promise<Page> {
  const { theme = 'light', width = 1280, path = '/' } = options
  const context = await browser.newContext({
    colorScheme: theme,
    viewport: { width, height: 800 },
    reducedMotion: 'reduce',
  })
  onTestFinished(() => context.close())
  const page = await context.newPage()
  page.setDefaultTimeout(PATIENCE_MS)
  const { code } = await daemon.api.call('session.code', {})
  await page.goto(`${daemon.url}${path}#code=${code}`)
  await isLive(page)
  return page
}

export const isLive = (page: Page) => page.waitForSelector('#connection[data-state=live]', { state: 'attached' })

/** `holdfast up` with an agent for everything that can happen. */
export async function townDaemon(
  place = new Installation(),
  port = '0',
  config = writeTown(temporaryFolder()),
): Promise<Daemon> {
  const process = place.start(['up', '--config', config, '--port', port])
  await process.said('holdfast: window:')
  const { url } = JSON.parse(readFileSync(join(place.home, 'daemon.json'), 'utf8')) as { url: string }
  const token = readFileSync(join(place.home, 'token'), 'utf8').trim()
  return { place, process, url, api: createClient({ url, token }) }
}

export async function send({ api }: Daemon, agent: string, text: string): Promise<{ threadId: string; runId: string }> {
  const { threadId, runId } = await api.call('messages.send', { agent, text })
  if (runId !== undefined) return { threadId, runId }
  return until(`${threadId} has a run`, async () => {
    const [run] = (await api.call('runs.list', { thread: threadId })).items
    return run === undefined ? undefined : { threadId, runId: run.id }
  })
}

export const reaches = ({ api }: Daemon, run: string, ...states: readonly string[]) =>
  until(`${run} is ${states.join(' or ')}`, async () => {
    const found = await api.call('runs.show', { run })
    return states.includes(found.state) ? found : undefined
  })

/** The place in the page, without loading it anew. */
export async function visit(page: Page, path: string): Promise<void> {
  await page.evaluate((to) => {
    history.pushState(null, '', to)
    dispatchEvent(new PopStateEvent('popstate'))
  }, path)
}
