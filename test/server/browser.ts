import { existsSync } from 'node:fs'

import { chromium } from 'playwright-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, onTestFinished } from 'vitest'

const CHROMIUM = process.env['HOLDFAST_CHROMIUM'] ?? '/usr/bin/chromium'
const FLAGS =
  '--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync --no-first-run'

export const noBrowser = !existsSync(CHROMIUM)
if (noBrowser) {
  console.log(
    `No browser at ${CHROMIUM}: the tests of the page are skipped. Install chromium, or set HOLDFAST_CHROMIUM.`,
  )
}

export interface Windows {
  /** A page that nobody has been at, without cookies or storage. */
  readonly fresh: () => Promise<Page>
  /** The page of a daemon, signed in; `place` is what stands behind `#`. */
  readonly open: (daemon: { readonly url: string; readonly token: string }, place?: string) => Promise<Page>
}

/** For the tests of a `describe`: one browser, closed behind them. */
export function useBrowser(): Windows {
  let browser: Browser | undefined
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS.split(' ') })
  })
  afterAll(() => browser?.close())
  const fresh = async () => {
    const context = await browser!.newContext()
    onTestFinished(() => context.close())
    const page = await context.newPage()
    page.setDefaultTimeout(30_000)
    return page
  }
  const open: Windows['open'] = async ({ url, token }, place) => {
    const page = await fresh()
    await page.goto(`${url}/#token=${token}`)
    await page.waitForSelector('#connection[data-state=live]')
    // A link that somebody follows, not a click in the page.
    if (place !== undefined) await page.goto(`${url}/#${place}`)
    return page
  }
  return { fresh, open }
}
