import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import type { ThreadId } from '../../src/base/ids.ts'
import { EVIL_THREAD, WORDS, fill } from '../decisions/hostile-world.ts'
import { HOSTILE, rawIn } from '../decisions/hostile.ts'
import { engines } from '../support/engines.ts'
import { Stage } from '../support/stage.ts'
import { noBrowser, useBrowser } from './browser.ts'
import { TOKEN, serve } from './support.ts'

/** Everything that the page has in its body, unfolded or not: the texts one by one, and what a hovering mouse would read. */
const TEXTS = `(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const texts = []
  while (walker.nextNode() !== null) texts.push(walker.currentNode.nodeValue)
  const hovered = [...document.querySelectorAll('[title], [aria-label]')]
  return [...texts, ...hovered.flatMap((each) => [each.title, each.ariaLabel ?? ''])]
})()`

async function expectHarmless(page: Page): Promise<string[]> {
  const texts = await page.evaluate<string[]>(TEXTS)
  for (const text of texts) expect(rawIn(text)).toBeUndefined()
  expect(await page.evaluate(() => 'taken' in globalThis)).toBe(false)
  expect(await page.locator('script').count()).toBe(1)
  expect(await page.locator(':is(#threads, #conversation) :is(img, svg, b, iframe, a)').count()).toBe(0)
  expect(await page.title()).toBe('Holdfast')
  return texts
}

const link = (threadId: string) => `/threads/${encodeURIComponent(threadId)}`

describe.skipIf(noBrowser)('300 hostile strings, in a real browser', () => {
  const { open } = useBrowser()

  test('wherever the page shows an action: nothing raw is in it, no script runs, and a link finds its thread', async () => {
    const store = await (await engines[0]!.database()).open()
    const { asking } = await fill(store)
    const { url, live } = await serve(store)
    const page = await open({ url, token: TOKEN }, link(EVIL_THREAD))
    await page.waitForSelector('.action[data-state=waiting] .decision')
    expect(await page.locator('.action').count()).toBeGreaterThan(HOSTILE.length)
    const texts = await expectHarmless(page)
    // Made visible, and not left out.
    expect(texts.some((text) => text.includes('\\u{1b}[2J'))).toBe(true)
    expect(await page.textContent('#subtitle')).toContain('evil\\u{1b}[2J\\u{202e}')

    // What is being said, word by word.
    live({ kind: 'text', runId: asking, threadId: EVIL_THREAD, agent: 'clerk', delta: WORDS.toWellFormed() })
    await page.waitForSelector('.live .text')
    await expectHarmless(page)
  })

  test('of what was done, failed or is in doubt, and of what people said about it', async () => {
    const store = await (await engines[0]!.database()).open()
    await fill(store)
    const { url } = await serve(store)
    const page = await open({ url, token: TOKEN }, link('acting'))
    await page.waitForSelector('.action[data-state=in_doubt]')
    await page.waitForSelector('.action[data-state=done]')
    expect(await page.locator('.fact pre').count()).toBeGreaterThanOrEqual(2 * HOSTILE.length)
    await expectHarmless(page)
  })

  test('a yes on the page is for the bytes of the one that was shown, whatever is in it [approvals/bound]', async () => {
    const store = await (await engines[0]!.database()).open()
    const stage = new Stage(store)
    stage.policy = []
    stage.threadId = 'a thread / with ? what & links # mean' as ThreadId
    const [first, second] = ['\u202etxt.exe', '<b>\u0007</b>']
    stage.replies = [{ calls: [first, second].map((entry) => ['append', { entry }] as const) }, { text: 'Done.' }]
    await stage.send('go')
    await stage.run(await stage.claim())
    const { url } = await serve(store)
    const page = await open({ url, token: TOKEN }, link(stage.threadId))
    await page.locator('.action[data-state=waiting]').nth(1).waitFor()
    await page.locator('.action', { hasText: '\\u{7}' }).locator('[data-decision=approve]').click()
    await page.waitForSelector('.action[data-state=approved]')
    await page.locator('.action', { hasText: '\\u{202e}' }).locator('[data-decision=deny]').click()
    await page.waitForSelector('.action[data-state=denied]')
    await expectHarmless(page)
    await stage.finished(await stage.claim())
    expect(stage.effects).toEqual([second])
  })
})
