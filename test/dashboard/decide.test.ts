import { expect, test } from 'vitest'

import { until } from '../support/holdfast.ts'
import { inBrowser, reaches, send, sharedTown } from './support.ts'

inBrowser('deciding', (open) => {
  const town = sharedTown()

  test('a write is approved with one key, and whoever looks at its run sees it finish [approvals/bound]', async () => {
    const daemon = town()
    const { runId } = await send(daemon, 'mailer', 'again')
    const watching = await open(daemon, { path: `/runs/${runId}` })
    await watching.waitForSelector('.action[data-state=waiting]')
    const desk = await open(daemon, { path: '/approvals' })
    const matter = desk.locator('article[data-approval]')
    await matter.waitFor()
    // What hides in the bytes is to be seen, both where they are read and where they are exact.
    const hidden = await matter.locator('dl .unseen, pre .unseen').allTextContents()
    expect(hidden).toEqual(['\\u{200b}', '\\u{202e}', '\\u{200b}', '\\u{202e}'])
    await desk.waitForSelector('article[data-read=true]')
    await desk.keyboard.press('a')
    await desk.waitForSelector('li [data-state=approved]')
    await watching.waitForSelector('h1 [data-state=succeeded]')
    await watching.waitForSelector('.action[data-state=done]')
    const { actions } = await daemon.api.call('runs.show', { run: runId })
    expect(actions?.map(({ state }) => state)).toEqual(['done'])
  })

  test('several in a row: after each decision the next one is there, and those before keep their place', async () => {
    const daemon = town()
    const runs: string[] = []
    for (const text of ['first', 'second', 'third']) {
      const { runId } = await send(daemon, 'deployer', text)
      await reaches(daemon, runId, 'parked')
      runs.push(runId)
    }
    const page = await open(daemon, { path: '/approvals' })
    const rows = page.locator('ul[aria-label=Approvals] > li')
    await until('three wait', async () => ((await rows.count()) === 3 ? true : undefined))
    const shown = page.locator('article[data-approval]')
    for (const [key, word] of [
      ['a', 'approved'],
      ['s', 'skipped'],
      ['d', 'denied'],
    ] as const) {
      const id = await shown.getAttribute('data-approval')
      // A key that is pressed before anybody can have read does nothing.
      await page.waitForSelector('article[data-state=pending][data-read=true]')
      await page.keyboard.press(key)
      await page.waitForSelector(`li [data-state=${word}]`)
      await page.waitForSelector(key === 'd' ? 'article [data-state=denied]' : `article:not([data-approval="${id}"])`)
    }
    expect(await rows.count()).toBe(3)
    const states = async () => {
      const all = await Promise.all(runs.map((run) => daemon.api.call('runs.show', { run })))
      return all.map(({ actions }) => actions?.[0]?.state)
    }
    await until('all three are settled', async () => ((await states()).includes('waiting') ? undefined : true))
    expect((await states()).slice(1)).toEqual(['skipped', 'denied'])
  })

  test('a doubt is settled by somebody who knows, with the evidence before their eyes [actions/no-blind-retry]', async () => {
    const daemon = town()
    const { runId } = await send(daemon, 'payer', 'renew')
    await reaches(daemon, runId, 'parked')
    const page = await open(daemon, { path: '/doubts' })
    const matter = page.locator('article[data-doubt]')
    await matter.waitFor()
    expect(await matter.textContent()).toContain('connection lost before the answer')
    await page.fill('#why', 'it is on the bank statement')
    await page.waitForSelector('article[data-read=true]')
    await page.click('[data-resolution=happened]')
    await page.waitForSelector('article [data-state=done]')
    const { actions } = await reaches(daemon, runId, 'succeeded')
    expect(actions?.[0]).toMatchObject({ state: 'done' })
    expect(actions?.[0]?.settledBy).toContain('bank statement')
  })

  test('a link from a notification opens the one that it names, also when it was decided long ago', async () => {
    const daemon = town()
    const { runId } = await send(daemon, 'deployer', 'now')
    await reaches(daemon, runId, 'parked')
    const [asked] = (await daemon.api.call('approvals.list', {})).items
    await daemon.api.call('approvals.decide', { approval: asked!.id, decision: 'deny', digest: asked!.digest })
    const page = await open(daemon, { path: `/approvals/${asked!.id}` })
    await page.waitForSelector('article [data-state=denied]')
    expect(await page.locator('[data-decision=approve]').count()).toBe(0)
  })
})
