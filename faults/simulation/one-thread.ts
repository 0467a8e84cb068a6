import { registerHooks } from 'node:module'
import { isMainThread } from 'node:worker_threads'

import { answerAtOnce } from './files.ts'
import { simulateProcesses } from './process-table.ts'
import { watchSqlite } from './sqlite.ts'
import { countImmediates } from './turns.ts'

/** What a function of this program has begun is remembered by the program; here each worker is to be a program of its own. */
const SHARED = 'export const isUnderWay = (key: string): boolean => hasBegun(key)'
const FORGOTTEN = 'export const isUnderWay = (key: string): boolean => hasBegun(`nobody has ${key}`)'

function forgetWhatIsUnderWay(): void {
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context)
      if (!url.endsWith('/src/define/owner.ts')) return loaded
      const source = Buffer.from(loaded.source as Uint8Array | string).toString()
      if (!source.includes(SHARED)) throw new Error('what is under way in a program is remembered in another way now')
      return { ...loaded, source: source.replace(SHARED, FORGOTTEN) }
    },
  })
}

/**
 * From now on this process is a world of its own: files answer at once, databases and processes are watched, and it is known
 * when nothing happens any more by itself. There is no way back. To be called before anything of the product is loaded.
 */
export async function becomeWorld(): Promise<void> {
  if (!isMainThread) throw new Error('a world needs a process of its own')
  forgetWhatIsUnderWay()
  // What is loaded when it is first needed takes real time, and there is none in a world.
  await import('../../src/workers/watch.ts')
  await import('../../src/workers/agents/resume-sessions.ts')
  await import('../../src/workers/agents/execute-agent.ts')
  await import('../../src/workers/workspace/settle.ts')
  await import('../../src/workers/workspace/sweep.ts')
  await import('../../src/store/sqlite/migrate.ts')
  answerAtOnce()
  simulateProcesses()
  watchSqlite()
  countImmediates()
}
