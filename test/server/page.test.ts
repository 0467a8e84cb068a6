import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { temporaryFolder } from '../support/engines.ts'
import { Installation, until } from '../support/holdfast.ts'
import { noBrowser, useBrowser } from './browser.ts'
import { DEMO, demoDaemon, quickDemo } from './support.ts'

describe.skipIf(noBrowser)('the page, in a real browser', () => {
  const { open, fresh } = useBrowser()

  async function say(page: Page, text: string): Promise<void> {
    await page.fill('#text', text)
    await page.press('#text', 'Enter')
  }

  test('a message to the demo agent: text as it is said, the action, the answer; and the token has left the address', async () => {
    const daemon = await demoDaemon(new Installation())
    const page = await open(daemon)
    expect(page.url()).not.toContain(daemon.token)
    await say(page, 'the boat is at pier 7')
    const live = page.locator('.live .text')
    await live.waitFor()
    const early = (await live.textContent()) ?? ''
    await until('more is said', async () =>
      ((await live.textContent()) ?? '').length > early.length ? true : undefined,
    )
    await page.waitForSelector('.action[data-state=done]')
    await page.waitForSelector('.run[data-state=succeeded]')
    expect(await page.locator('.user .text').allTextContents()).toEqual(['the boat is at pier 7'])
    expect((await page.locator('.reply .text').allTextContents()).at(-1)).toContain('in the ledger, once')
    expect(await page.locator('.live').count()).toBe(0)
    await page.click('.action summary')
    expect(await page.locator('.fact pre').allTextContents()).toEqual([
      expect.stringContaining('the boat is at pier 7'),
      expect.stringContaining('"number": 1'),
    ])
    expect(await page.locator('#threads .preview').allTextContents()).toEqual(['the boat is at pier 7'])
  })

  test('what people and agents write is shown as it is, never as part of the page', async () => {
    const folder = temporaryFolder()
    const evil = '<script>document.title = "taken"</script><img src=x onerror="document.title = \'taken\'"><b>bold</b>'
    const config = JSON.parse(readFileSync(DEMO, 'utf8')) as { agents: { clerk: { model: string } } }
    config.agents.clerk.model = 'scripted:./evil.json'
    const replies = [
      { text: evil, toolCalls: [{ tool: evil, input: { [evil]: evil } }] },
      { text: `${evil} {{message}}` },
    ]
    writeFileSync(join(folder, 'evil.json'), JSON.stringify({ repeat: true, replies }))
    writeFileSync(join(folder, 'holdfast.config.json'), JSON.stringify(config))
    const page = await open(await demoDaemon(new Installation(), join(folder, 'holdfast.config.json')))
    await say(page, evil)
    await page.waitForSelector('.run[data-state=succeeded]')
    await page.click('.action summary')
    expect(await page.locator('.user .text').allTextContents()).toEqual([evil])
    expect(await page.locator('.reply .text').allTextContents()).toEqual([evil, `${evil} ${evil}`])
    expect(await page.locator('.tool').textContent()).toBe(evil)
    expect(await page.locator('#threads .preview').textContent()).toBe(evil.slice(0, 120))
    expect(await page.locator('#window img, #window b, #window script').count()).toBe(1)
    expect(await page.title()).toBe('Holdfast')
  })

  test('a write that waits for a person has its exact input unfolded and is decided here [approvals/bound]', async () => {
    const config = quickDemo()
    const written = JSON.parse(readFileSync(config, 'utf8')) as object
    writeFileSync(config, JSON.stringify({ ...written, policy: [] }))
    const page = await open(await demoDaemon(new Installation(), config))
    await say(page, 'pier \u202e7')
    await page.waitForSelector('.action[data-state=waiting] .decision')
    expect(await page.locator('.action details[open] .fact pre').first().textContent()).toContain('pier \\u{202e}7')
    await page.click('[data-decision=approve]')
    await page.waitForSelector('.action[data-state=done]')
    await page.waitForSelector('.run[data-state=succeeded]')
    expect(await page.locator('.decision').count()).toBe(0)
  })

  test('it says that it reconnects, goes on by itself when the daemon is back, and loses nothing that was typed', async () => {
    const place = new Installation()
    const first = await demoDaemon(place, quickDemo(800))
    const page = await open(first)
    await say(page, 'before')
    await page.waitForSelector('.live')
    first.process.kill('SIGKILL')
    await page.waitForSelector('#connection[data-state=reconnecting]')
    await say(page, 'while it is away')
    await page.waitForSelector('#send-problem:not(:empty)')
    expect(await page.inputValue('#text')).toBe('while it is away')
    await demoDaemon(place, quickDemo(), new URL(first.url).port)
    await page.waitForSelector('#connection[data-state=live]')
    await page.waitForSelector('.run[data-state=succeeded]')
    await page.press('#text', 'Enter')
    await page.locator('.run[data-state=succeeded]').nth(1).waitFor()
    expect(await page.locator('.user .text').allTextContents()).toEqual(['before', 'while it is away'])
  })

  test('Cancel ends what is being said, and it stays cancelled [runs/cancel-is-final]', async () => {
    const page = await open(await demoDaemon(new Installation()))
    await say(page, 'do not')
    await page.waitForSelector('.live')
    await page.click('.cancel')
    await page.waitForSelector('.run[data-state=cancelled]')
    expect(await page.locator('.user .text').allTextContents()).toEqual(['do not'])
    expect(await page.locator('.cancel, .live').count()).toBe(0)
  })

  test('without a token it asks for one, and a wrong one is not let in', async () => {
    const { url, token } = await demoDaemon(new Installation())
    const page = await fresh()
    await page.goto(url)
    const signIn = async (given: string) => {
      await page.fill('#token', given)
      await page.click('#sign-in-form button')
    }
    await signIn('wrong')
    await page.waitForSelector('#sign-in-problem:not(:empty)')
    await signIn(token)
    await page.waitForSelector('#connection[data-state=live]')
  })
})
