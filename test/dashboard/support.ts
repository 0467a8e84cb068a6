import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { chromium } from 'playwright-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, onTestFinished } from 'vitest'

import { createClient } from '../../src/api/client.ts'
import type { Api } from '../../src/api/client.ts'
import type { Store } from '../../src/store/store.ts'
import { TOKEN, serve } from '../server/support.ts'
import { temporaryFolder } from '../support/engines.ts'
import { Installation, PROGRAM, until } from '../support/holdfast.ts'
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
  readonly process: Pick<Running, 'kill'>
  readonly home: string
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

/** One for all files of this worker, which ends with it: a start costs more than most tests. */
async function ownBrowser(): Promise<Browser> {
  if ((await started)?.isConnected() !== true)
    started = chromium.launch({ executablePath: CHROMIUM, args: FLAGS.split(' '), timeout: 55_000 })
  return (await started)!
}

let started: Promise<Browser> | undefined

/** Tests in one browser; each opens pages of its own, as somebody who has just signed in. */
export function inBrowser(title: string, tests: (open: OpenPage, browser: () => Browser) => void): void {
  // eslint-disable-next-line vitest/valid-title -- the title of whoever calls this
  describe.skipIf(missing)(title, () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await ownBrowser()
    })
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

/** `holdfast up` with an agent for everything that can happen, for one test. */
export async function townDaemon(place = new Installation(), port = '0'): Promise<Daemon> {
  const config = writeTown(temporaryFolder())
  const process = place.start(['up', '--config', config, '--port', port])
  await process.said('holdfast: window:')
  return { process, home: place.home, ...reachable(place.home) }
}

function reachable(home: string): { readonly url: string; readonly api: Api } {
  const { url } = JSON.parse(readFileSync(join(home, 'daemon.json'), 'utf8')) as { url: string }
  return { url, api: createClient({ url, token: readFileSync(join(home, 'token'), 'utf8').trim() }) }
}

/** A window onto a store in which nobody carries anything out: the test decides what happens. */
export async function windowOf(store: Store) {
  const { url, live } = await serve(store)
  const daemon: Daemon = { process: { kill: () => {} }, home: '', url, api: createClient({ url, token: TOKEN }) }
  return { daemon, live }
}

/** One daemon for all the tests of a file: what they do in it does not meet. `prepare` gets its home before it starts. */
export function sharedTown(prepare: (home: string) => Promise<void> = async () => {}): () => Daemon {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-town-'))
  const home = join(folder, 'home')
  let child: ChildProcess | undefined
  let daemon: Daemon | undefined
  beforeAll(async () => {
    mkdirSync(home)
    await prepare(home)
    const config = writeTown(join(folder, 'town'))
    const env = { ...process.env, HOLDFAST_HOME: home, HOLDFAST_STORE: '' }
    child = spawn(PROGRAM, ['up', '--config', config, '--port', '0'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
    await until('the daemon is up', () => Promise.resolve(said.includes('holdfast: window:') ? true : undefined))
    const kill = (signal: NodeJS.Signals) => void child?.kill(signal)
    daemon = { process: { kill }, home, ...reachable(home) }
  })
  afterAll(async () => {
    child?.kill('SIGTERM')
    if (child?.exitCode === null) await once(child, 'close')
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }, 60_000)
  return () => daemon!
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
  await page.evaluate(
    `history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`,
  )
}
