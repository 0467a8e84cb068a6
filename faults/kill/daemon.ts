import { drawDoom } from './points.ts'
import { sleep } from './program.ts'
import type { Scene } from './scene.ts'
import { UP } from './yard.ts'

/** After this the point that was drawn is not met any more. */
const POINT_MS = 700
/** As long as a few short runs take. */
const WORK_MS = 400
/** As long as a start with its recovery takes. */
const RECOVERY_MS = 500

/** The daemon dies at work, perhaps again while it recovers. */
export async function killDaemon(scene: Scene): Promise<void> {
  const { yard, dice } = scene
  await yard.up()
  const asked = dice.chance(0.2) ? await scene.waiting() : []
  const doom = dice.chance(0.5) ? drawDoom(dice, 'daemon') : undefined
  if (doom !== undefined) yard.tellDoom('daemon', doom)
  await scene.begin()
  if (asked.length > 0)
    await yard.withStore(async (store) => {
      for (const id of asked) await scene.answer(store, id)
    })
  await diesWithin(scene, doom === undefined ? dice.below(WORK_MS) : POINT_MS, 'at work')
  await recoverUnderFire(scene)
}

/** Whoever died before: the next daemon may die as well, before another brings everything to its end. */
export async function recoverUnderFire(scene: Scene): Promise<void> {
  const { yard, dice } = scene
  while (dice.chance(0.4)) {
    // While nobody has the database open, the next who does has to recover its log.
    if (dice.chance(0.5)) await scene.look()
    const doom = dice.chance(0.5) ? drawDoom(dice, 'daemon') : undefined
    const isRecovery = !yard.isUp
    if (isRecovery) yard.start(doom)
    else if (doom !== undefined) yard.tellDoom('daemon', doom)
    if (doom === undefined) await sleep(dice.below(RECOVERY_MS))
    // However slow the machine: a point of its start is met until it is up, one of the recovery soon after.
    else await Promise.race([yard.daemon.ended, yard.daemon.said(UP).then(() => sleep(RECOVERY_MS))])
    await diesWithin(scene, 0, isRecovery ? 'while it recovers' : 'at work')
  }
  if (dice.chance(0.5)) await scene.look()
  await yard.up()
  await scene.settle()
}

/** By itself, at a named point; or from outside, when that time has passed. */
export async function diesWithin(scene: Scene, ms: number, when: string): Promise<void> {
  const { daemon } = scene.yard
  await Promise.race([daemon.ended, sleep(ms)])
  const byItself = daemon.isOver()
  daemon.kill()
  scene.killed(`daemon ${when}, ${byItself ? 'at a named point' : 'at any moment'}`)
  const { signal, code, stderr } = await daemon.ended
  if (signal !== 'SIGKILL') scene.complain(`the daemon ended by itself (${signal ?? code}): ${stderr.slice(-600)}`)
}
