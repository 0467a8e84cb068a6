import { ToolLoopAgent } from 'ai'
import { expect, test } from 'vitest'

import { durable } from '../../src/ai-sdk/index.ts'
import { createRuntime, defineFunction } from '../../src/index.ts'
import { mock } from '../ai-sdk/mock.ts'
import { noting } from '../ai-sdk/support.ts'
import { until } from '../support/holdfast.ts'
import { inBrowser, sharedTown, visit } from './support.ts'

const notary = defineFunction<{ wish: string }>('notary', async (run) => {
  const model = mock([{ says: 'I write it down.', calls: [['note', { entry: run.input.wish }]] }, 'It is noted.'])
  const agent = new ToolLoopAgent({ ...durable({ model, tools: { note: noting([]) } }) })
  return (await agent.generate({ prompt: `Note this: ${run.input.wish}` })).text
})

const sums = defineFunction<{ terms: readonly number[] }>('sums', async (run) => {
  const total = await run.step('add', () => Promise.resolve(run.input.terms.reduce((sum, term) => sum + term, 0)))
  return { total }
})

/** One that was approved and ended, one that waits for a person, one of which nothing is said yet, and a function without a model. */
async function work(home: string): Promise<void> {
  const runtime = await createRuntime({ home, agents: [notary, sums] })
  await runtime.start()
  const asks = () => until('it asks', async () => (await runtime.approvals.list())[0])
  const first = await runtime.call({ function: 'notary', input: { wish: 'milk' }, threadId: 'ticket 4711' })
  await runtime.approvals.approve(await asks(), { by: 'Ann' })
  await first.result()
  await (await runtime.call({ function: 'sums', input: { terms: [2, 3] } })).result()
  await runtime.call({ function: 'notary', input: { wish: 'bread' }, threadId: 'ticket 4712' })
  await asks()
  await runtime.close()
  const absent = await createRuntime({ home, agents: [notary] })
  await absent.call({ function: 'notary', input: { wish: 'salt' }, threadId: 'ticket 4713' })
  await absent.close()
}

inBrowser('a loop of the AI SDK', (open) => {
  const town = sharedTown(work)

  test('its thread has what was asked, said and done, under the name that it was given; its run what it was called with', async () => {
    const page = await open(town(), { path: '/threads' })
    await page.getByText('ticket 4711').click()
    await page.waitForSelector('.run[data-state=succeeded]')
    expect(await page.locator('.user .text').allTextContents()).toEqual(['Note this: milk'])
    expect(await page.locator('.reply .text').allTextContents()).toEqual(['I write it down.', 'It is noted.'])
    expect(await page.locator('.action .tool').allTextContents()).toEqual(['note'])
    // A function that has ended reads nothing: nobody is asked to write to it.
    expect(await page.locator('#text').isDisabled()).toBe(true)
    await page.locator('.run a', { hasText: 'Run' }).click()
    await page.locator('figure', { hasText: 'What it was called with' }).getByText('"wish": "milk"').waitFor()
  })

  test('a call of it shows what it was given until there is a first answer', async () => {
    const daemon = town()
    const page = await open(daemon, { path: '/threads/ticket%204713' })
    await page.waitForSelector('.run[data-state=queued]')
    expect(JSON.parse((await page.locator('.user .text').textContent())!)).toEqual({ wish: 'salt' })
    const inputs = async (thread: string) =>
      (await daemon.api.call('threads.show', { thread })).runs.map(({ input }) => input)
    expect(await inputs('ticket 4713')).toEqual([{ wish: 'salt' }])
    expect(await inputs('ticket 4711')).toEqual([undefined])
  })

  test('a function without a model shows what came of it, in its thread and on the page of its run', async () => {
    const page = await open(town(), { path: '/threads/calls:sums' })
    const line = page.locator('.run[data-state=succeeded]')
    await line.waitFor()
    expect(await line.textContent()).toContain('5')
    await line.getByRole('link', { name: 'Run' }).click()
    await page.locator('figure', { hasText: 'Result' }).getByText('"total": 5').waitFor()
    expect(await page.locator('.action').textContent()).not.toContain('null')
  })

  test('a call of it that waits is decided on the page, which does not offer to change what only the program knows', async () => {
    const daemon = town()
    const page = await open(daemon, { path: '/approvals' })
    await page.getByText('It cannot be changed from here.').waitFor()
    expect(await page.locator('[data-edit=open]').count()).toBe(0)
    await page.waitForSelector('article[data-read=true]')
    await page.keyboard.press('a')
    await page.waitForSelector('li [data-state=approved]')
    await visit(page, '/threads/ticket%204712')
    await page.waitForSelector('.action[data-state=approved]')
  })
})
