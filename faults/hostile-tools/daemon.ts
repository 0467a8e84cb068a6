/** A daemon with its window, as `holdfast up` makes one, but with a short grace. Says where it is, and serves until it is killed. */
import { writeSync } from 'node:fs'

import { createRuntime } from '../../src/runtime.ts'
import { startServer } from '../../src/server/server.ts'
import { tendRegularly } from '../../src/workers/tend.ts'

const [, , home = '', token = '', graceMs = ''] = process.argv
const warn = (message: string) => void process.stderr.write(`${message}\n`)
const runtime = await createRuntime({ home, warn, environment: { PATH: process.env['PATH'] ?? '' } })
const worker = await runtime.registerWorker('daemon', { concurrency: 32, graceMs: Number(graceMs) })
const kept = [{ by: 'the owner', scopes: ['admin'], read: () => Promise.resolve(token) }] as const
const { url } = await startServer({ port: 0, runtime, kept, warn })
tendRegularly(runtime, worker)
await worker.start()
writeSync(1, `${url}\n`)
