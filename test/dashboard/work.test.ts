import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { Installation, until } from '../support/holdfast.ts'
import { inBrowser, isLive, reaches, send, sharedTown, townDaemon } from './support.ts'

inBrowser('working with agents', (open, browser) => {
  const town = sharedTown()

  test('the first start teaches: one button runs an agent, and its thread shows every step', async () => {
    const page = await open(await townDaemon())
    await page.click('#run-demo')
    await page.waitForURL(/\/threads\/thr_/)
    await page.waitForSelector('.run[data-state=succeeded]')
    expect(await page.locator('.user .text').allTextContents()).toEqual(['Write down that the boat is at pier 7.'])
    expect(await page.locator('.action .tool').allTextContents()).toEqual(['lookup', 'ledger_append'])
    expect(await page.locator('.reply .text').last().textContent()).toContain('in the ledger, once')
  })

  test('a message is written with the keyboard alone; words come as they are said, and Cancel ends them [runs/cancel-is-final]', async () => {
    const daemon = town()
    const page = await open(daemon, { path: '/threads' })
    await page.getByRole('button', { name: 'New thread' }).waitFor()
    await page.keyboard.press('n')
    await page.selectOption('#agent', 'talker')
    await page.fill('#text', 'go on')
    await page.press('#text', 'Enter')
    await page.waitForURL(/\/threads\/thr_/)
    const live = page.locator('.live .text')
    await live.waitFor()
    const early = (await live.textContent()) ?? ''
    await until('more is said', async () =>
      ((await live.textContent()) ?? '').length > early.length ? true : undefined,
    )
    await page.click('.run .cancel')
    await page.waitForSelector('.run[data-state=cancelled]')
    expect(await page.locator('.live').count()).toBe(0)
  })

  test('a tool that is at work is cancelled from its run, and says so [control/stop-means-stopped]', async () => {
    const daemon = town()
    const { runId } = await send(daemon, 'slow', 'begin')
    const page = await open(daemon, { path: `/runs/${runId}` })
    await page.waitForSelector('.action[data-state=started]')
    const pidFile = join(daemon.home, 'long-job.pid')
    const pid = await until('it is at work', async () =>
      existsSync(pidFile) ? Number(readFileSync(pidFile, 'utf8')) || undefined : undefined,
    )
    await page.keyboard.press('x')
    await page.waitForSelector('h1 [data-state=cancelled]')
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
    const { actions } = await reaches(daemon, runId, 'cancelled')
    expect(actions?.map(({ state }) => state)).toEqual(['in_doubt'])
  })

  test('a thread is stopped and resumed', async () => {
    const daemon = town()
    const { threadId } = await send(daemon, 'slow', 'begin')
    const page = await open(daemon, { path: `/threads/${threadId}` })
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.waitForSelector('h1 [data-state=stopped]')
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('button', { name: 'Stop' }).waitFor()
    expect((await daemon.api.call('threads.show', { thread: threadId })).state).toBe('open')
  })

  test('when the daemon dies it says so, loses nothing that was typed, and goes on after the last event [durable/acknowledged]', async () => {
    const place = new Installation()
    const first = await townDaemon(place)
    const { threadId } = await send(first, 'clerk', 'before')
    const page = await open(first, { path: `/threads/${threadId}` })
    await page.waitForSelector('.run[data-state=succeeded]')
    first.process.kill('SIGKILL')
    await page.waitForSelector('#connection[data-state=reconnecting]')
    await page.fill('#text', 'while it is away')
    await page.press('#text', 'Enter')
    await page.waitForSelector('#send-problem:not(:empty)')
    expect(await page.inputValue('#text')).toBe('while it is away')
    // Somebody else speaks to the thread before anybody is there to hear it.
    await place.run(['send', threadId, 'from the command line'])
    await townDaemon(place, new URL(first.url).port)
    await isLive(page)
    await page.press('#text', 'Enter')
    await until('all three were answered', async () => {
      const said = await page.locator('.user .text').allTextContents()
      const ended = await page.locator('.run[data-state=succeeded]').count()
      return said.length === 3 && ended >= 2 ? true : undefined
    })
    const said = await page.locator('.user .text').allTextContents()
    expect(said.toSorted()).toEqual(['before', 'from the command line', 'while it is away'])
  })

  test('without a code it asks for one; a code works once, and a token works too', async () => {
    const daemon = town()
    const { code } = await daemon.api.call('session.code', {})
    const given = async (secret: string) => {
      const context = await browser().newContext()
      const page = await context.newPage()
      await page.goto(`${daemon.url}/runs`)
      await page.fill('#secret', secret)
      await page.press('#secret', 'Enter')
      const outcome = await Promise.race([
        isLive(page).then(() => page.url()),
        page.waitForSelector('#refusal:not(:empty)').then(() => 'refused'),
      ])
      await context.close()
      return outcome
    }
    expect(await given(code)).toBe(`${daemon.url}/runs`)
    expect(await given(code)).toBe('refused')
    expect(await given('wrong')).toBe('refused')
  })
})
