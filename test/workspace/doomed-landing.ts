/**
 * Lands, and kills itself with SIGKILL at the nth point that it passes, or the first of that name. Prints `survived N` when it passed fewer.
 *
 *   node doomed-landing.ts PROJECT ROOMS FROM TO NTH [MOVE_TO]
 *
 * With MOVE_TO somebody moves the branch there by force when all files are in place, so that they have to go back.
 */
import { execFileSync } from 'node:child_process'

import { systemClock } from '../../src/base/clock.ts'
import type { GitPoint } from '../../src/git/git.ts'
import { land } from '../../src/git/land.ts'
import { openRepository } from '../../src/git/repository.ts'

const [, , project = '', rooms = '', from = '', to = '', nth = '0', moveTo] = process.argv
let passed = 0
const point = (name: GitPoint) => {
  if (name === 'land/placed' && moveTo !== undefined) {
    execFileSync('git', ['update-ref', 'refs/heads/main', moveTo], { cwd: project })
  }
  passed += 1
  if (passed === Number(nth) || name === nth) {
    process.stdout.write(`${name}\n`)
    process.kill(process.pid, 'SIGKILL')
  }
}
const git = { clock: systemClock, env: process.env, rooms }
const repo = await openRepository(git, project)
const end = await land({ ...git, point }, repo, { target: 'refs/heads/main', from, to, runId: 'run_1' })
process.stdout.write(`survived ${passed} ${JSON.stringify(end)}\n`)
