import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

import type { Git } from './git.ts'
import { ready, type Landed } from './landing.ts'
import type { Change, Site } from './landing-view.ts'
import { asRecords, records, shownPath, type RawPath } from './paths.ts'
import { atDesk, readSettings } from './room.ts'
import { runGit } from './run-git.ts'
import { operationIn } from './working-trees.ts'

/** What makes it impossible to put these changes into this tree by ourselves, before anything is compared. */
export async function obstacleIn(git: Git, site: Site, changes: readonly Change[]): Promise<Landed | undefined> {
  const operation = await operationIn(site.gitDir)
  if (operation !== undefined) return ready('operation', `${site.top} is in the middle of ${operation}`)
  const settings = await readSettings(git, site.gitDir)
  if (settings.get('core.sparsecheckout') === 'true')
    return ready('sparse', `only a part of ${site.top} is checked out`)
  if ((await readdir(site.gitDir)).some((name) => name.startsWith('sharedindex.'))) {
    return ready('sparse', `the index of ${site.top} is split, and cannot be replaced as a whole`)
  }
  const submodule = changes.find((change) => [change.old?.mode, change.new?.mode].includes('160000'))
  if (submodule !== undefined)
    return ready('submodule', `the submodule ${shownPath(submodule.path)} is part of the work`)
  if (settings.get('core.ignorecase') === 'true') return namesThatMeet(changes)
  return undefined
}

/** Where the file system knows no difference between them. */
function namesThatMeet(changes: readonly Change[]): Landed | undefined {
  const seen = new Map<string, RawPath>()
  for (const { path } of changes) {
    const low = path.toLowerCase()
    if (seen.has(low)) return ready('names', `${shownPath(path)} differs from another name only by its case`)
    seen.set(low, path)
  }
  return undefined
}

/** A file that a filter of the user's has to write, as large file storage does: we run none. */
export async function filterIn(git: Git, site: Site, changes: readonly Change[]): Promise<Landed | undefined> {
  for (const index of ['index.from', 'index.to']) {
    const desk = atDesk(site.repo, { workTree: site.top, index: join(site.own, index) })
    const asked = ['check-attr', '--cached', '-z', '--stdin', 'filter']
    const { stdout } = await runGit(git, asked, { ...desk, input: asRecords(changes.map(({ path }) => path)) })
    const fields = records(stdout)
    for (let at = 0; at + 2 < fields.length; at += 3) {
      if (['unspecified', 'unset'].includes(fields[at + 2]!)) continue
      return ready(
        'filter',
        `${shownPath(fields[at]!)} has to pass the filter "${fields[at + 2]}", which is not run here`,
      )
    }
  }
  return undefined
}
