/**
 * Makes patches fit again around which the sources have changed:
 *
 *   node faults/planted/refit.ts
 *
 * Where the very lines have changed that a bug changes, nobody but a person can make it again.
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { hunksOf, plantedBugs } from './patch.ts'
import type { Planted } from './patch.ts'
import { PrivateTree, ROOT, applyPatch } from './private-tree.ts'

const tree = new PrivateTree()
try {
  for (const bug of plantedBugs()) {
    if (applyPatch(ROOT, bug.path, '--check') === undefined) continue
    console.log(`${bug.name}: ${refit(bug) ?? 'fits again'}`)
  }
} finally {
  tree.remove()
}

function refit(bug: Planted): string | undefined {
  const trouble = applyPatch(tree.root, bug.path, '-C0')
  if (trouble !== undefined) return `make it again by hand: ${trouble}`
  const files = [...new Set(hunksOf(bug).map(({ file }) => file))]
  const head = bug.text.slice(0, bug.text.indexOf('diff --git '))
  writeFileSync(bug.path, head + files.map(changesOf).join(''))
  tree.pullOut(bug.path)
  return undefined
}

function changesOf(file: string): string {
  const between = ['diff', '--no-index', '--no-color', '-U1', join(ROOT, file), join(tree.root, file)]
  const { stdout } = spawnSync('git', between, { encoding: 'utf8' })
  const hunks = stdout.slice(stdout.indexOf('\n@@ ') + 1).replaceAll(/^(@@ .*? @@).*$/gm, '$1')
  return `diff --git a/${file} b/${file}\n--- a/${file}\n+++ b/${file}\n${hunks}`
}
