import { join } from 'node:path'

import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'

import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { sql } from '../../src/store/sql.ts'
import { run } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'
import { inBrowser, sharedTown, visit } from './support.ts'

const RUNS = 10_000

/** As many runs that have ended, a minute apart, without having carried out any. */
function* longHistory(count: number, until: number): Transition<void> {
  const numbers = sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < ${count})`
  yield* run(sql`${numbers} insert into threads (id, agent, created_at)
    select 'thr_' || printf('%06d', i), 'clerk', ${until} - (${count} - i) * 60000 from n`)
  yield* run(sql`${numbers} insert into runs (id, thread_id, agent, state, request, request_digest, attempt, result, kind,
      cost_microusd, created_at, started_at, ended_at)
    select 'run_' || printf('%06d', i), 'thr_' || printf('%06d', i), 'clerk', 'succeeded', '{"kind":"agent"}', '', 1,
      json_quote('What came of number ' || i), 'agent', 1000, ${until} - (${count} - i) * 60000,
      ${until} - (${count} - i) * 60000 + 20, ${until} - (${count} - i) * 60000 + 1500 from n`)
}

async function fill(home: string): Promise<void> {
  const store = await openSqliteStore({ path: join(home, 'holdfast.db') })
  await store.apply(longHistory, RUNS, Date.now())
  await store.close()
}

/** How long the page's own thread has worked, in ms of processor time: what others do on this machine is not in it. */
async function workMeter(page: Page): Promise<() => Promise<number>> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' })
  return async () => {
    const { metrics } = await devtools.send('Performance.getMetrics')
    return 1000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN)
  }
}

/** Ten windows further, and then as long as it takes to draw it. */
const SCROLL = `(async () => {
  const box = document.querySelector('[data-rows]')
  box.scrollTop += 10 * box.clientHeight
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
  return [box.scrollTop + box.clientHeight >= box.scrollHeight - 1, Number(box.dataset.rows)]
})()`

inBrowser('a long history', (open) => {
  const town = sharedTown(fill)

  test(`${RUNS} runs: the list is there at once, has few rows in the page, and scrolls without a long task`, async () => {
    const page = await open(town())
    const worked = await workMeter(page)
    const start = await worked()
    await visit(page, '/runs')
    await page.waitForSelector('[data-rows] li')
    const firstRows = (await worked()) - start
    const rows = page.locator('[data-rows] li')
    const steps: number[] = []
    let most = 0
    for (let isAtEnd = false; !isAtEnd && steps.length < 1000;) {
      const before = await worked()
      const [atEnd, known] = (await page.evaluate(SCROLL)) as [boolean, number]
      steps.push((await worked()) - before)
      most = Math.max(most, await rows.count())
      isAtEnd = atEnd && known >= RUNS
    }
    await page.locator('[data-rows] li[aria-posinset="10000"]').waitFor()
    expect(most).toBeLessThan(150)
    const sorted = steps.toSorted((a, b) => a - b)
    const usual = sorted[Math.floor(sorted.length * 0.9)] ?? 0
    console.log(
      `the first rows took ${firstRows.toFixed()} ms of work, nine of ten steps at most ${usual.toFixed()} ms, all at most ${sorted.at(-1)?.toFixed()}`,
    )
    // A second to the first paint, and no task over 50 ms while scrolling: a step has several tasks. Twice that, because processors differ.
    expect(firstRows).toBeLessThan(2000)
    expect(usual).toBeLessThan(100)
  })

  test('j and k move, Enter opens, going back is where one was, and ? says what else there is', async () => {
    const page = await open(town(), { path: '/runs' })
    await page.waitForSelector('[data-rows] li')
    for (let times = 0; times < 30; times += 1) await page.keyboard.press('j')
    await page.keyboard.press('k')
    const chosen = page.locator('[data-rows] a[aria-current=true]')
    expect(await chosen.getAttribute('href')).toBe(`/runs/run_${String(RUNS - 28).padStart(6, '0')}`)
    await page.keyboard.press('Enter')
    await page.waitForURL(/run_009972$/)
    await page.waitForSelector('h1 [data-state=succeeded]')
    await page.goBack()
    expect(await chosen.getAttribute('href')).toBe(`/runs/run_${String(RUNS - 28).padStart(6, '0')}`)
    await page.keyboard.press('g')
    await page.keyboard.press('h')
    await page.waitForURL((url) => url.pathname === '/')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
  })
})
