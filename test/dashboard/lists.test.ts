import { expect, test } from 'vitest'

import { until } from '../support/holdfast.ts'
import { inBrowser, reaches, send, sharedTown, visit } from './support.ts'

inBrowser('lists', (open) => {
  const town = sharedTown()

  test('a schedule has a calendar of what was and what comes, fires now, pauses, and needs somebody when it is paused', async () => {
    const daemon = town()
    const { runId } = await send(daemon, 'clerk', 'so that there is something')
    await reaches(daemon, runId, 'succeeded')
    const { id } = await daemon.api.call('schedules.add', {
      name: 'nightly',
      every: '24h',
      agent: 'clerk',
      text: 'the report',
    })
    const page = await open(daemon, { path: '/schedules' })
    const marks = page.locator('section[aria-label=Calendar] li li')
    await until('weeks of it come', async () => ((await marks.count()) > 7 ? true : undefined))
    expect(await marks.first().getAttribute('title')).toContain('nightly: planned')
    await page.getByRole('button', { name: 'Run now' }).click()
    await page.getByText('nightly fires now.').waitFor()
    await page.locator('section[aria-label=Calendar] li li[title*="nightly: succeeded"]').waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Resume' }).waitFor()
    expect(await daemon.api.call('schedules.show', { schedule: id })).toMatchObject({
      state: 'paused',
      last: [{ origin: 'run_now', state: 'succeeded' }],
    })
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
    // Before its first reply it would take both.
    await until('it is at work', async () => {
      const { actions } = await daemon.api.call('threads.show', { thread: threadId })
      return actions.length > 0 ? true : undefined
    })
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
