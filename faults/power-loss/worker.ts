/** Lives one after the other, with every power loss in them: `node worker.ts FIRST EVERY MOST`. */
import { playUntilToldToStop } from '../processes.ts'
import { play } from './play.ts'

await playUntilToldToStop(play)
