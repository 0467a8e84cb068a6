/** Sequences, one after the other: `node worker.ts FIRST EVERY MOST`. */
import { playUntilToldToStop } from '../processes.ts'
import { SERVER, play } from './play.ts'
import { Sides } from './sides.ts'

const sides = await Sides.open(process.env[SERVER]!, `model_${process.pid}`)
await playUntilToldToStop((seed) => play(sides, seed))
