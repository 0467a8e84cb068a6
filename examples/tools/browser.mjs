// Opens a page in a real browser and says what is on it. CHROMIUM: the path of the browser. Needs `playwright-core`.
// The browser's processes are descendants of this one: whoever cancels ends them too.
import { chromium } from 'playwright-core'

import { answer } from './input.mjs'

const [executablePath] = process.argv.slice(2)
const MOST_CHARACTERS = 50_000

await answer(async ({ url, screenshot }) => {
  if (!/^https?:\/\//.test(url)) throw new Error(`${url} is not an address of the web`)
  const browser = await chromium.launch({ executablePath })
  try {
    const page = await browser.newPage()
    const response = await page.goto(url, { waitUntil: 'load' })
    if (screenshot !== undefined) await page.screenshot({ path: screenshot, fullPage: true })
    const text = await page.locator('body').innerText()
    return { status: response?.status(), title: await page.title(), text: text.slice(0, MOST_CHARACTERS) }
  } finally {
    await browser.close()
  }
})
