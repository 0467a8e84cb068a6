import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'

import type { ThreadId } from '../../src/base/ids.ts'
import { EVIL_THREAD, WORDS, fill } from '../decisions/hostile-world.ts'
import { rawIn } from '../decisions/hostile.ts'
import { engines } from '../support/engines.ts'
import { Stage } from '../support/stage.ts'
import { inBrowser, visit, windowOf } from './support.ts'

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
  expect(await page.locator('#app :is(script, iframe, img:not([src="/icon.svg"]))').count()).toBe(0)
  expect(rawIn(await page.title())).toBeUndefined()
  return texts
}

const placeOf = (threadId: string) => `/threads/${encodeURIComponent(threadId)}`

inBrowser('300 hostile strings', (open) => {
  test('wherever the page shows an action nothing raw is in it, no script runs, and a link finds its thread', async () => {
    const store = await (await engines[0]!.database()).open()
    const { asking } = await fill(store)
    const { daemon, live } = await windowOf(store)
    const page = await open(daemon, { path: placeOf(EVIL_THREAD) })
    await page.waitForSelector('.action[data-state=waiting]')
    const texts = await expectHarmless(page)
    // Made visible, and not left out.
    expect(texts.some((text) => text.includes('\\u{1b}'))).toBe(true)
    // What is being said, word by word.
    live({ kind: 'text', runId: asking, threadId: EVIL_THREAD, agent: 'clerk', delta: WORDS.toWellFormed() })
    await page.waitForSelector('.reply.live, .reply.text-quiet')
    await expectHarmless(page)
    for (const path of ['/', '/approvals', '/doubts', '/events', `/runs/${asking}`, placeOf('acting')]) {
      await visit(page, path)
      await page.waitForSelector('main h1')
      await page.waitForSelector('[aria-busy=true]', { state: 'detached' })
      await expectHarmless(page)
    }
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
    const { daemon } = await windowOf(store)
    const page = await open(daemon, { path: placeOf(stage.threadId) })
    await page.locator('.action[data-state=waiting]').nth(1).waitFor()
    const press = async (text: string, name: string, state: string) => {
      await page.locator('.action', { hasText: text }).getByRole('button', { name }).click()
      await page.waitForSelector(`.action[data-state=${state}]`)
    }
    await press('\\u{7}', 'Approve', 'approved')
    await press('\\u{202e}', 'Deny', 'denied')
    await expectHarmless(page)
    // Whatever its name means in an address, the list leads to it.
    await visit(page, '/threads')
    await page.locator('[data-rows] a').click()
    await page.waitForSelector('.action[data-state=approved]')
    await stage.finished(await stage.claim())
    expect(stage.effects).toEqual([second])
  })
})
