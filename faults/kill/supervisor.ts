import { drawDoom } from './points.ts'
import { recoverUnderFire } from './daemon.ts'
import { sleep } from './program.ts'
import type { Scene } from './scene.ts'
import type { AgentName } from './agents.ts'

/** As long as a supervisor with its short command takes. */
const LIFE_MS = 250
const NOTICED_MS = 1_500

/** The supervisor of one command dies, perhaps together with the daemon that started it. */
export async function killSupervisor(scene: Scene): Promise<void> {
  const { yard, dice } = scene
  await yard.up()
  const isNamed = dice.chance(0.6)
  const doom = isNamed ? drawDoom(dice, 'supervisor') : `moment:${dice.below(LIFE_MS)}`
  const together = dice.chance(0.3)
  scene.mayBeUnknown = true
  scene.mayDieTogether = together
  yard.tellDoom('supervisor', together ? `${doom}:both` : doom)
  const agents: readonly AgentName[] = ['plain', 'keyed', 'probed']
  await yard.withStore(async (store) => {
    if (dice.chance(0.5)) await scene.command(store, `c${scene.seed}`, dice.below(100))
    else await scene.agent(store, dice.pick(agents))
  })
  // With it, the daemon is gone at once; alone, its death is told by the run.
  if (together) await Promise.race([yard.daemon.ended, sleep(NOTICED_MS)])
  await scene.notice()
  await recoverUnderFire(scene)
  for (const at of yard.deathsOfSupervisors())
    scene.killed(isNamed ? 'supervisor at a named point' : 'supervisor at any moment', at)
}
