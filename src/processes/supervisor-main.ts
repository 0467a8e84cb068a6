import { supervise } from './supervisor.ts'

/*
 * The program that outlives the worker: node supervisor-main.ts FOLDER. It is told to stop by signals. It lives in a
 * session of its own, and a Ctrl-C or a closed terminal that reaches it all the same is not meant for it.
 */
const stop = new AbortController()
process.on('SIGTERM', () => stop.abort('cancelled'))
process.on('SIGUSR2', () => stop.abort('lease-lost'))
process.on('SIGINT', () => {})
process.on('SIGHUP', () => {})

await supervise(process.argv[2] ?? '', stop)
process.exit(0)
