import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'

import { until } from '../support/holdfast.ts'
import { inBrowser, reaches, send, sharedTown, visit } from './support.ts'

const DAY_MS = 86_400_000
const iso = (offsetMs: number) => new Date(Date.now() + offsetMs).toISOString()

/** What the doors of schedules answer, here without a daemon behind them. */
async function answerForSchedules(page: Page): Promise<string[]> {
  const acted: string[] = []
  let state = 'active'
  const job = {
    id: 'sch_1',
    name: 'nightly',
    kind: 'job',
    rule: { kind: 'every', everyMs: DAY_MS, anchor: iso(-DAY_MS) },
    failures: 0,
    firings: 3,
    createdAt: iso(-DAY_MS),
    updatedAt: iso(-DAY_MS),
  }
  const target = { kind: 'agent', agent: 'clerk', text: 'the report' }
  await page.route('**/api/v1/schedules?*', (route) =>
    route.fulfill({
      json: {
        items: [{ ...job, target, state, nextAt: iso(DAY_MS), next: [{ at: iso(DAY_MS) }, { at: iso(2 * DAY_MS) }] }],
      },
    }),
  )
  const past = {
    id: 'occ_1',
    scheduleId: 'sch_1',
    dueAt: iso(-DAY_MS),
    attempts: 3,
    state: 'failed',
    reason: 'timeout',
  }
  await page.route('**/api/v1/occurrences?*', (route) => route.fulfill({ json: { items: [past] } }))
  await page.route('**/api/v1/schedules/sch_1/*', (route) => {
    const verb = new URL(route.request().url()).pathname.split('/').at(-1) ?? ''
    acted.push(verb)
    if (verb !== 'run-now') state = verb === 'pause' ? 'paused' : 'active'
    return route.fulfill({ json: {} })
  })
  return acted
}

inBrowser('lists', (open) => {
  const town = sharedTown()

  test('a schedule has a calendar of what was and what comes, fires now, pauses, and needs somebody when it is paused', async () => {
    const daemon = town()
    const { runId } = await send(daemon, 'clerk', 'so that there is something')
    await reaches(daemon, runId, 'succeeded')
    const page = await open(daemon, { path: '/runs' })
    const acted = await answerForSchedules(page)
    await visit(page, '/schedules')
    const marks = page.locator('section[aria-label=Calendar] li li')
    await until('one was and two come', async () => ((await marks.count()) === 3 ? true : undefined))
    expect(await marks.first().getAttribute('title')).toContain('nightly: failed')
    await page.getByRole('button', { name: 'Run now' }).click()
    await page.getByText('nightly fires now.').waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Resume' }).waitFor()
    expect(acted).toEqual(['run-now', 'pause'])
    await visit(page, '/')
    await page.locator('section[aria-label="Needs you"] [data-state=paused]').waitFor()
  })

  test('while somebody points at a list nothing moves in it; what is new says so, and comes when they leave', async () => {
    const daemon = town()
    const { runId } = await send(daemon, 'clerk', 'the first')
    await reaches(daemon, runId, 'succeeded')
    const page = await open(daemon, { path: '/runs' })
    const first = page.locator('[data-rows] li').first()
    await first.hover()
    const before = await first.locator('a').getAttribute('href')
    const later = await send(daemon, 'clerk', 'the second')
    await reaches(daemon, later.runId, 'succeeded')
    await page.getByText('1 new one: show').waitFor()
    expect(await first.locator('a').getAttribute('href')).toBe(before)
    await page.mouse.move(10, 10)
    await until('it has come', async () =>
      (await first.locator('a').getAttribute('href')) === `/runs/${later.runId}` ? true : undefined,
    )
  })

  test('a dead letter is found where it needs somebody, and is delivered again', async () => {
    const daemon = town()
    const { threadId } = await send(daemon, 'slow', 'begin')
    await daemon.api.call('messages.send', { threadId, text: 'too late for this' })
    await until('it is removed', () =>
      daemon.api.call('threads.remove', { thread: threadId, force: true }).then(
        () => true as const,
        () => undefined,
      ),
    )
    const page = await open(daemon)
    const need = page.locator('section[aria-label="Needs you"] a', { hasText: 'too late for this' })
    await need.click()
    await page.waitForURL(/\/inbox\/msg_/)
    await page.getByText('recipient removed').first().waitFor()
    await page.getByRole('button', { name: 'Deliver again' }).click()
    await page.getByText('It is on its way again.').waitFor()
  })
})
