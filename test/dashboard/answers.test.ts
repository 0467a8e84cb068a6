import type { Page, Route } from 'playwright-core'
import { expect, test } from 'vitest'

import type { MessageId, ThreadId } from '../../src/base/ids.ts'
import type { Store } from '../../src/store/store.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { buryUntaken } from '../../src/threads/dead-letter.ts'
import { removeThread } from '../../src/threads/remove.ts'
import { openThread } from '../../src/threads/thread.ts'
import { engines } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { Stage } from '../support/stage.ts'
import { inBrowser, isLive, visit, windowOf } from './support.ts'

/** A world of one database, and a window onto it. */
async function world() {
  const store = await (await engines[0]!.database()).open()
  return { stage: new Stage(store), ...(await windowOf(store)) }
}

/** Keeps back the next answer of an address, as it was when it was asked for. The ones after it are let through. */
async function holdNext(page: Page, address: RegExp): Promise<() => Promise<() => Promise<void>>> {
  let held: (() => Promise<void>) | undefined
  await page.route(address, async (route) => {
    const response = await route.fetch()
    const pass = () => route.fulfill({ response })
    if (held !== undefined) return pass()
    held = pass
  })
  return () => until('an answer is kept back', () => Promise.resolve(held))
}

/** The next answer of an address has come, and what the page makes of it is drawn. */
async function answered(page: Page, address: RegExp, act: () => Promise<unknown>): Promise<void> {
  const answer = page.waitForResponse(address)
  await act()
  await (await answer).finished()
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
}

const signInPage = (route: Route) =>
  route.fulfill({ status: 200, contentType: 'text/html', body: '<!doctype html><h1>Sign in to the proxy</h1>' })

const LETTER = 'msg_lost' as MessageId

/** One that nobody will read. */
async function leaveLetter(store: Store): Promise<void> {
  const threadId = 'gone' as ThreadId
  await store.apply(openThread, threadId, 'clerk', null)
  await store.apply(acceptMessage, { id: LETTER, threadId, kind: 'prompt', key: 'k', body: { text: 'hello?' } })
  await store.apply(removeThread, threadId)
  await store.apply(buryUntaken, 10)
}

const THREADS = /\/api\/v1\/threads\?limit=200/

inBrowser('answers that come late, twice, or from somebody else', (open) => {
  test('a doubt that is one again can be settled again, as often as that happens', async () => {
    const { stage, daemon } = await world()
    stage.doubts = 'park'
    stage.perform = () => Promise.resolve({ kind: 'in-doubt', error: 'cut off' })
    stage.replies = [{ calls: [['append', { entry: 'one' }]] }, { text: 'Done.' }]
    await stage.send('go')
    await stage.run(await stage.claim())
    const page = await open(daemon, { path: '/doubts' })
    const again = page.locator('[data-resolution=run-again]:enabled')
    // Another worker could still do it: it is in doubt as before, with the same number of tries and the same words.
    stage.rival = () => Promise.resolve('a worker elsewhere')
    for (const _ of ['once', 'twice']) {
      await again.waitFor()
      await page.keyboard.press('r')
      await page.waitForSelector('li [data-state=approved]')
      await stage.run(await stage.claim())
    }
    await again.waitFor()
    await page.waitForSelector('li [data-state=in_doubt]')
    await page.keyboard.press('a')
    await page.waitForSelector('article [data-state=done]')
  })

  test('an answer that was asked for earlier and comes later does not take back what is listed', async () => {
    const { stage, daemon } = await world()
    const sendTo = (thread: string) => {
      stage.threadId = thread as ThreadId
      return stage.send('hello', thread)
    }
    await sendTo('first')
    const page = await open(daemon, { path: '/threads' })
    await page.waitForSelector('[data-rows="1"]')
    const held = await holdNext(page, THREADS)
    await sendTo('second')
    const old = await held()
    await sendTo('third')
    await page.waitForSelector('[data-rows="3"]')
    await answered(page, THREADS, old)
    expect(await page.locator('[data-rows="3"]').count()).toBe(1)
  })

  test("a proxy's page is said to be none of the daemon's answers, with what to do, and goes by when it does", async () => {
    const { daemon } = await world()
    const page = await open(daemon)
    const alert = page.locator('[role=alert]', { hasText: 'what answers is not a Holdfast daemon' })
    await page.route(THREADS, signInPage)
    await visit(page, '/threads')
    expect(await alert.first().textContent()).toContain('sign in where a proxy asks you to')
    // While the page starts, too; and a stream that is none does not count as one.
    await page.route(/\/api\/v1\/session$/, signInPage)
    await page.reload()
    await alert.waitFor()
    let streams = 0
    await page.route(/\/api\/v1\/events$/, (route) => {
      streams += 1
      return signInPage(route)
    })
    await page.unroute(/\/api\/v1\/session$/)
    await page.waitForSelector('#connection')
    await page.evaluate(`new MutationObserver(() => {
      globalThis.wasLive ||= document.querySelector('#connection').dataset.state === 'live'
    }).observe(document.querySelector('#connection'), { attributes: true })`)
    await until('the stream was asked for again', () => Promise.resolve(streams > 2 ? true : undefined))
    expect(await page.evaluate('globalThis.wasLive === true')).toBe(false)
    await page.unrouteAll()
    await isLive(page)
  })

  test('what is typed while a message is on its way is kept', async () => {
    const { stage, daemon } = await world()
    await stage.send('hello')
    const page = await open(daemon, { path: `/threads/${stage.threadId}` })
    await page.fill('#text', 'one')
    const held = await holdNext(page, /\/api\/v1\/messages$/)
    await page.press('#text', 'Enter')
    const sent = await held()
    await page.locator('#text').pressSequentially('two')
    await sent()
    await page.locator('.user .text', { hasText: 'one' }).waitFor()
    await until('the rest is there', async () => ((await page.inputValue('#text')) === 'two' ? true : undefined))
  })

  test('a list of which the last row goes while somebody points at it is empty when they leave', async () => {
    const { stage, daemon } = await world()
    await leaveLetter(stage.store)
    const page = await open(daemon, { path: '/inbox' })
    await page.locator('[data-rows] li').hover()
    await answered(page, /\/api\/v1\/messages\?limit=200/, () => daemon.api.call('dead.purge', { message: LETTER }))
    expect(await page.locator('[data-rows] li').count()).toBe(1)
    await page.mouse.move(10, 10)
    await page.getByText('No dead letters').waitFor()
  })

  test('the number of approvals is right wherever one looked before, also when a run takes its own with it', async () => {
    const { stage, daemon } = await world()
    stage.policy = []
    stage.replies = [{ calls: [['append', { entry: 'one' }]] }]
    const ask = async (thread: string) => {
      stage.threadId = thread as ThreadId
      await stage.send('go', thread)
      const claim = await stage.claim()
      await stage.run(claim)
      return claim.run.id
    }
    const run = await ask('first')
    const page = await open(daemon, { path: `/threads/${stage.threadId}` })
    const place = page.locator('nav[aria-label=Main] a[href="/approvals"]').first()
    await page.waitForSelector('.action[data-state=waiting] [data-decision=approve]')
    const counts = (word: string) =>
      until(`it says ${word}`, async () => ((await place.textContent()) === word ? true : undefined))
    // What was still to be read when the page began has been read by then.
    await ask('second')
    await counts('Approvals2')
    await daemon.api.call('runs.cancel', { run })
    await page.waitForSelector('.action[data-state=withdrawn]')
    await counts('Approvals1')
  })

  test('who signs out is told so, whatever was being read at that moment', async () => {
    const { daemon } = await world()
    const page = await open(daemon, { path: '/settings' })
    const [gate, asked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const address = /\/api\/v1\/status$/
    // What the page reads when it begins may be what is kept back, where that comes late: nothing more is asked before its answer.
    await page.route(address, async (route) => {
      asked.resolve()
      await gate.promise
      await route.continue()
    })
    await visit(page, '/events')
    await page.getByRole('heading', { name: 'Events' }).waitFor()
    await visit(page, '/settings')
    await asked.promise
    await page.getByRole('button', { name: 'Sign out' }).click()
    const told = page.getByText('You signed out.')
    await told.waitFor()
    await answered(page, address, async () => gate.resolve())
    expect(await told.isVisible()).toBe(true)
  })

  test('a sign-out that does not reach the daemon is said not to have happened; an event that is not there, too', async () => {
    const { daemon } = await world()
    const page = await open(daemon, { path: '/events/999999' })
    await page.getByText('There is no such event').waitFor()
    await visit(page, '/settings')
    await page.route(/\/api\/v1\/session\/close$/, (route) => route.abort())
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.locator('[data-toast=bad]', { hasText: 'You are still signed in' }).waitFor()
    await page.unrouteAll()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You signed out.').waitFor()
  })
})
