import { join } from 'node:path'

import { expect, test } from 'vitest'

import { recordStarting } from '../../src/runs/attempt.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { sql } from '../../src/store/sql.ts'
import { run } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'
import { until } from '../support/holdfast.ts'
import { running } from '../support/world.ts'
import { inBrowser, reaches, send, sharedTown, visit } from './support.ts'

/** Its worker is on a machine that this one cannot see, and was last heard an hour ago. */
function* longSilent(attempt: string, since: number): Transition<void> {
  yield* run(sql`update attempts set lease_until = ${since} where id = ${attempt}`)
}

let silent: string

async function leaveOneBehind(home: string): Promise<void> {
  const store = await openSqliteStore({ path: join(home, 'holdfast.db') })
  const { ref } = await running(store)
  await store.apply(recordStarting, ref)
  await store.apply(longSilent, ref.id, Date.now() - 3_600_000)
  silent = ref.runId
  await store.close()
}

inBrowser('what was left to decide', (open) => {
  const town = sharedTown(leaveOneBehind)

  test('a person changes a call; the changed one asks for a yes of its own, and is what runs [approvals/bound]', async () => {
    const daemon = town()
    const { runId } = await send(daemon, 'deployer', 'roll it out')
    await reaches(daemon, runId, 'parked')
    const page = await open(daemon, { path: '/approvals' })
    const shown = page.locator('article[data-approval]')
    await shown.waitFor()
    const before = await shown.getAttribute('data-approval')
    await page.keyboard.press('e')
    const box = page.locator('dialog[aria-label="Change the call"] textarea')
    await box.waitFor()
    const save = page.locator('[data-edit=save]')
    // The key that opened it is not typed into it, and what is not JSON, or not changed, cannot be saved.
    expect(JSON.parse(await box.inputValue())).toMatchObject({ service: 'checkout' })
    expect(await save.isDisabled()).toBe(true)
    await box.fill('{ "service": ')
    await page.waitForSelector('textarea[aria-invalid=true]')
    expect(await save.isDisabled()).toBe(true)
    const changed = { service: 'checkout', version: '2026.11.4', regions: ['eu-west-1'], note: 'one region first' }
    await box.fill(JSON.stringify(changed))
    await box.press('Control+Enter')
    await page.waitForSelector(`article[data-approval]:not([data-approval="${before}"])[data-state=pending]`)
    expect(await shown.textContent()).toContain('one region first')
    expect((await daemon.api.call('runs.show', { run: runId })).state).toBe('parked')
    await page.waitForSelector('article[data-read=true]')
    await page.keyboard.press('a')
    const ended = await reaches(daemon, runId, 'succeeded')
    const done = ended.actions?.filter(({ state }) => state === 'done')
    expect(done?.map(({ input }) => input)).toEqual([changed])
  })

  test('what one does not see in a call can be seen where it is changed, and stays what it is [approvals/bound]', async () => {
    const daemon = town()
    const { runId } = await send(daemon, 'mailer', 'again')
    await reaches(daemon, runId, 'parked')
    const asked = (await daemon.api.call('approvals.list', {})).items.find((each) => each.runId === runId)
    const page = await open(daemon, { path: `/approvals/${asked!.id}` })
    await page.click('[data-edit=open]')
    const box = page.locator('dialog[aria-label="Change the call"] textarea')
    const text = await box.inputValue()
    expect(text).toContain('"Your invoice \\u202egpj.exe"')
    expect(text).not.toMatch(/[\u202e\u200b]/)
    // The same value, so that there is nothing to save; and what somebody pastes is counted.
    expect(await page.locator('#edit-problem').textContent()).toBe('Nothing is changed yet.')
    await box.fill(text.replace('exe', 'e\u200bxe'))
    await page.getByText('1 character in it that one does not see.').waitFor()
  })

  test('a machine that is silent is named where people look first, and only a person says that it is dead', async () => {
    const daemon = town()
    const page = await open(daemon)
    const need = page.locator(`a[href="/runs/${silent}"]`).first()
    await need.waitFor()
    expect(await need.textContent()).toContain('host-a is silent')
    await visit(page, `/runs/${silent}`)
    await page.waitForSelector('[data-silent=host-a]')
    // Folded away: nobody says it by the way.
    expect(await page.locator('[data-disown]').isVisible()).toBe(false)
    await page.click('[data-silent] summary')
    await page.click('[data-disown]')
    await page.waitForSelector('h1 [data-state=failed]')
    expect(await daemon.api.call('runs.show', { run: silent })).toMatchObject({ state: 'failed', code: 'lost' })
    // Nothing leaves a list while somebody points at it.
    await page.mouse.move(10, 10)
    await visit(page, '/')
    await until('it is not in the list any more', async () => ((await need.count()) === 0 ? true : undefined))
  })
})
