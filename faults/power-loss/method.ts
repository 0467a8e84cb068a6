import { fileURLToPath } from 'node:url'

import type { Method } from '../method.ts'
import { inProcesses } from '../processes.ts'
import { canTrace } from './record.ts'

/** The real programs with their writes and syncs recorded; then what every power loss in between would have left is opened. */
export const powerLoss: Method = {
  name: 'power-loss',
  title:
    'Real programs whose writes and syncs are recorded; each fault is a disk that a power loss could have left, opened again',
  cases: 'recorded lives',
  async run(campaign) {
    if (!canTrace()) {
      console.log('left out: it needs strace, and the right to use it')
      return
    }
    await inProcesses(campaign, fileURLToPath(new URL('worker.ts', import.meta.url)))
  },
}
