import { closeSync, ftruncateSync, mkdirSync, openSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

import type { Script } from '../../src/model/script.ts'
import { AgentInstallation } from '../support/agents.ts'

/** Calls that would go on for ever. */
export interface Hanging {
  readonly calls: readonly { readonly tool: string; readonly input: unknown }[]
  /** The states of their actions once they were stopped: a cut-off write may have happened, a read is just made again. */
  readonly left: readonly string[]
  /** How many of the calls run at once, and how many commands say that they are at work. */
  readonly together: number
  readonly reports: number
}

const call = (tool: string, input: unknown = {}) => ({ tool, input })
/** Says that it is at work, in a file of its run, and never comes back. */
const HANGS = 'echo $$ >>ready-$HOLDFAST_RUN; sleep 300 | cat'
const shell = (command = HANGS) => call('shell', { command })

const one = { together: 1, reports: 1 }
const reading = { left: ['failed'], together: 1 }
const writing = { left: ['in_doubt'], ...one }

const hangingAt = (url: string): Readonly<Record<string, Hanging>> => ({
  shell: { calls: [shell()], ...writing },
  'shell-twice': { calls: [shell(), shell()], left: ['in_doubt', 'withdrawn'], ...one },
  'parallel-shell': { calls: [call('parallel_shell', { commands: [HANGS, HANGS] })], ...writing, reports: 2 },
  'write-tool': { calls: [call('write_something')], ...writing },
  'read-tool': { calls: [call('read_something')], ...reading, reports: 1 },
  'read-tool-twice': {
    calls: [call('read_something'), call('read_something')],
    left: ['failed', 'failed'],
    together: 2,
    reports: 2,
  },
  'remote-tool': { calls: [call('remote')], ...writing },
  'files-search': { calls: [call('files_search', { text: 'needle', path: 'huge' })], ...reading, reports: 0 },
  'http-get': { calls: [call('http_get', { requests: [{ url }, { url }] })], ...reading, reports: 0 },
  'http-send': { calls: [call('http_send', { method: 'POST', url })], ...writing, reports: 0 },
})

/** It ignores being asked, so that it takes the grace of five seconds. */
const STUBBORN: Hanging = { calls: [shell(`trap '' TERM; ${HANGS}`)], ...writing }

const commandTool = (effect: 'read' | 'write', more: object = {}) => ({
  effect,
  description: 'Takes its time',
  command: ['/bin/sh', '-c', HANGS],
  ...more,
})

/** An installation with one agent for each of them; its first reply calls it, and a second one would say that it went on. */
export async function installHanging(options: { readonly stubborn?: boolean; readonly only?: string } = {}) {
  const port = await silentServer()
  const all = hangingAt(`http://127.0.0.1:${port}/`)
  const hanging: Readonly<Record<string, Hanging>> = options.stubborn === true ? { ...all, stubborn: STUBBORN } : all
  const replies = ({ calls }: Hanging): Script['replies'] => [{ toolCalls: calls }, { text: 'it went on' }]
  const tools = ['shell', 'parallel_shell', 'files', 'http', 'write_something', 'read_something', 'remote']
  const place = new AgentInstallation({
    agents: Object.fromEntries(
      Object.entries(hanging).map(([name, each]) => [name, { replies: replies(each), tools }]),
    ),
    tools: {
      write_something: commandTool('write'),
      read_something: commandTool('read'),
      remote: commandTool('write', { stop: ['/bin/sh', '-c', 'echo $HOLDFAST_ACTION_KEY >>stopped-elsewhere'] }),
    },
    http: { allowPrivate: [`127.0.0.1:${port}`] },
  })
  if (options.only === undefined) makeHuge(join(place.folder, 'huge'))
  return { place, hanging }
}

/** Sparse, so it costs nothing to make, and several seconds to read. */
function makeHuge(folder: string): void {
  mkdirSync(folder)
  for (let index = 0; index < 3_000; index++) {
    const file = openSync(join(folder, `${index}.txt`), 'w')
    ftruncateSync(file, 4 * 1024 * 1024)
    closeSync(file)
  }
}

/** Takes every request and answers none. */
async function silentServer(): Promise<number> {
  const server = createServer(() => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}
