import { isToStop } from './attempt-folder.ts'
import { supervise } from './supervisor.ts'

/*
 * The program that outlives the worker: node supervisor-main.ts FOLDER. It is told to stop by signals. It lives in a
 * session of its own, and a Ctrl-C or a closed terminal that reaches it all the same is not meant for it.
 */
const folder = process.argv[2] ?? ''
const [stop, cancel] = [new AbortController(), new AbortController()]
process.on('SIGTERM', () => {
  stop.abort('cancelled')
  cancel.abort()
})
process.on('SIGUSR2', () => isToStop(folder) && stop.abort('lease-lost'))
process.on('SIGINT', () => {})
process.on('SIGHUP', () => {})

await supervise(folder, stop, cancel.signal)
process.exit(0)
