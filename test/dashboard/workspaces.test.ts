import { mkdirSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { sql } from '../../src/store/sql.ts'
import { run } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'
import { typed } from '../server/in-process.ts'
import { Repository } from '../support/repository.ts'
import { inBrowser, sharedTown, visit } from './support.ts'

/*
 * What runs did to files, as people see it. Each kind is made by the real command line before the daemon starts; only a quarantine and a
 * landing that is stuck, which nothing brings about on purpose, are written down.
 */

const CODE = 'export const total = 1\n\nexport function double(value) {\n  return value * 2\n}\n'
const CHECK =
  '#!/bin/sh\necho "running 3 tests"\ngrep -q "total = 3" total.mjs || { echo "not ok 2 - total is 3"; exit 1; }\n'

interface Made {
  readonly repo: Repository
  readonly ids: Readonly<Record<'landed' | 'ready' | 'discarded' | 'quarantined' | 'shadow' | 'stuck', string>>
}
let made: Made

function* quarantine(runId: string): Transition<void> {
  yield* run(sql`update workspaces set state = 'quarantined', came_from = 'discarding', keep_until = null,
    reason = 'the repository was moved while it was being put aside' where run_id = ${runId}`)
}

/** Somebody has asked to land it, and it is tried again, but not while a test looks. */
function* stick(runId: string): Transition<void> {
  yield* run(sql`update workspaces set state = 'decided', reason = null, error = 'a landing was begun, and its tree is not there',
    wish = 'land', wish_by = 'ann', settler = null, settle_until = 9000000000000 where run_id = ${runId}`)
}

async function fill(home: string): Promise<void> {
  // Below the town's folder, which is removed with it.
  const folder = join(home, '..', 'app')
  mkdirSync(folder)
  const repo = new Repository({ 'total.mjs': CODE, 'check.sh': CHECK, 'notes.md': '# Notes\n' }, folder)
  const work = async (script: string, mode = 'transaction'): Promise<string> => {
    const flags = ['--workspace', repo.folder, '--workspace-mode', mode, '--check', './check.sh', '--agent', 'coder']
    const { stdout } = await typed(['--json', 'run', ...flags, '--', 'sh', '-c', script], { HOLDFAST_HOME: home })
    return (JSON.parse(stdout) as { id: string }).id
  }
  const edit = (total: number) => `sed -i "s/total = .*/total = ${total}/" total.mjs`
  const discarded = await work(
    `${edit(2)}; printf 'a <b>bold</b> line\\n\\342\\200\\256evil\\n' > 'odd name.txt'; rm notes.md`,
  )
  const quarantined = await work(edit(4))
  const landed = await work(edit(3))
  const shadow = await work(`${edit(5)}; exit 3`, 'shadow')
  const ready = await work(`${edit(3)}; echo more >> notes.md; echo "export const half = 1.5" >> total.mjs`)
  const stuck = await work('echo "export const third = 1" >> total.mjs')
  const store = await openSqliteStore({ path: join(home, 'holdfast.db') })
  await store.apply(quarantine, quarantined)
  await store.apply(stick, stuck)
  await store.close()
  made = { repo, ids: { landed, ready, discarded, quarantined, shadow, stuck } }
}

inBrowser('workspaces', (open) => {
  const town = sharedTown(fill)

  test('what was discarded is shown line by line with what the check said, and one key brings it back', async () => {
    const { repo, ids } = made
    const page = await open(town(), { path: `/runs/${ids.discarded}` })
    const panel = page.locator('[data-workspace=discarded]')
    await panel.waitFor()
    expect(await panel.textContent()).toContain('Your tree is as it was')
    expect(await panel.locator('[data-check=failed]').textContent()).toContain('not ok 2 - total is 3')
    await page.waitForSelector('[data-diff="3"]')
    const lines = (kind: string) => page.locator(`[data-line=${kind}]`).allTextContents()
    expect(await lines('removed')).toEqual(expect.arrayContaining(['-export const total = 1', '-# Notes']))
    expect(await lines('added')).toEqual(
      expect.arrayContaining(['+export const total = 2', '+a <b>bold</b> line', '+\\u{202e}evil']),
    )
    // Not by the colour alone, and the colours are there.
    const ground = (kind: string) =>
      page.evaluate(`getComputedStyle(document.querySelector('[data-line=${kind}]')).backgroundColor`)
    expect(new Set([await ground('added'), await ground('removed'), await ground('same')]).size).toBe(3)
    await page.waitForSelector('[data-read=true]')
    await page.keyboard.press('b')
    await page.waitForSelector('[data-workspace=kept]')
    expect(repo.git('show', `holdfast/${ids.discarded}:total.mjs`)).toContain('total = 2')
  })

  test('work that is ready comes first, lands with one key when it can, and says why when it cannot', async () => {
    const { repo, ids } = made
    const page = await open(town())
    const need = page.locator(`a[href="/runs/${ids.ready}"]`).first()
    await need.waitFor()
    expect(await need.textContent()).toContain('ready to land')
    await need.click()
    await page.waitForSelector('[data-workspace=ready]')
    await page.waitForSelector('[data-read=true]')
    // The shadow left an edit in the tree: that is the person's, and stays.
    await page.keyboard.press('l')
    await page.waitForSelector('[data-toast=bad]')
    expect(repo.read('total.mjs')).toContain('total = 5')
    repo.git('checkout', 'total.mjs')
    await page.click('[data-verb=land]')
    await page.waitForSelector('[data-workspace=landed]')
    expect(repo.read('total.mjs')).toContain('half = 1.5')
  })

  test('a quarantine is listed with what can be done, and discarding it leaves a way back', async () => {
    const { ids } = made
    const page = await open(town(), { path: '/workspaces?state=ready,quarantined' })
    await page.click(`a[href="/runs/${ids.quarantined}"]`)
    await page.waitForSelector('[data-workspace=quarantined]')
    expect(await page.locator('[data-verb]').allTextContents()).toEqual([
      expect.stringContaining('Try again'),
      expect.stringContaining('Keep as a branch'),
      expect.stringContaining('Discard'),
    ])
    await page.waitForSelector('[data-read=true]')
    await page.keyboard.press('d')
    await page.waitForSelector('[data-workspace=discarded]')
    await page.waitForSelector('[data-verb=keep]')
    await visit(page, '/workspaces?state=would_land,would_discard,observing')
    expect(await page.locator('[data-report="1"]').textContent()).toContain('1 run')
    await page.waitForSelector(`a[href="/runs/${ids.shadow}"]`)
  })

  test('a landing that is stuck says why, and can be given up with one key', async () => {
    const page = await open(town(), { path: `/runs/${made.ids.stuck}` })
    const panel = page.locator('[data-workspace=decided]')
    await panel.waitFor()
    expect(await panel.textContent()).toContain('its tree is not there')
    await page.waitForSelector('[data-read=true]')
    expect(await panel.locator('[data-verb]').allTextContents()).toEqual([expect.stringContaining('Discard')])
    await page.keyboard.press('d')
    await page.waitForSelector('[data-workspace=discarded]')
    expect(made.repo.read('total.mjs')).not.toContain('third')
  })
})
