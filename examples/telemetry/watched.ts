// An agent that delegates, watched by a collector that prints. Its program is killed in the middle of a write and started again:
// the second attempt refers to the first, and the write is told of once, by the evidence that settled it.
// It plays all parts and checks itself: `npm run example:telemetry` ends with 0 only if all of that was told.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import { createRuntime, defineAgent, defineTool } from 'holdfast'
import { scriptedModel } from 'holdfast/testing'
import { z } from 'zod'

const [folder] = process.argv.slice(2)
if (folder === undefined) await watch()
else await work(folder)

/** The program. Nothing in it is about telemetry, but one option. */
async function work(home: string): Promise<void> {
  const died = join(home, 'died')
  const pay = defineTool({
    name: 'pay',
    description: 'Pays a bill',
    effect: 'write',
    input: z.object({ bill: z.string() }),
    run: ({ bill }, signal) => {
      signal.throwIfAborted()
      if (existsSync(died)) return { paid: bill }
      writeFileSync(died, bill)
      process.kill(process.pid, 'SIGKILL')
      return undefined
    },
    probe: () => ({ outcome: 'done', result: { paid: 'rent' } }),
  })
  const call = (tool: string, input: Record<string, string>) => ({ tool, input })
  const boss = scriptedModel({
    replies: [
      { toolCalls: [call('pay', { bill: 'rent' })] },
      { toolCalls: [call('delegate', { agent: 'clerk', task: 'Write it down.', mode: 'wait' })] },
      { text: 'Paid, and written down.' },
    ],
  })
  const clerk = scriptedModel({ replies: [{ text: 'It is written down.' }] })
  const agents = [
    defineAgent({ name: 'boss', model: boss, tools: [pay, 'delegate'], delegates: ['clerk'] }),
    defineAgent({ name: 'clerk', model: clerk }),
  ]
  const runtime = await createRuntime({ home, agents, policy: [{ decision: 'allow' }], telemetry: true })
  await runtime.start()
  console.log(await runtime.ask({ agent: 'boss', text: 'The rent is due.', key: 'rent' }).text())
  await runtime.close()
}

/** Whoever starts it, with a collector beside it. */
async function watch(): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'holdfast-telemetry-'))
  const collector = spawn(process.execPath, [join(import.meta.dirname, 'collector.mjs'), '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = createInterface(collector.stdout)[Symbol.asyncIterator]()
  const [url] = /http:\S+/.exec((await lines.next()).value as string) ?? []
  const start = () =>
    spawnSync(
      process.execPath,
      [...process.execArgv, '--import', join(import.meta.dirname, 'otel.mjs'), import.meta.filename, home],
      { encoding: 'utf8', env: { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: url } },
    )
  const first = start()
  assert.equal(first.signal, 'SIGKILL', `it should have been killed: ${first.stderr}`)
  const second = start()
  assert.equal(second.status, 0, second.stderr)
  process.stdout.write(second.stdout)
  const told = await hear(lines)
  collector.kill()
  rmSync(home, { recursive: true, force: true })

  const boss = the(told, /^span (\S+) after \S+ \| invoke_agent boss .*holdfast\.attempt\.number=2 .*run\.state=parked/)
  const paid = the(told, /^span \S+ below (\S+) \| execute_tool pay .*outcome=performed .*settled_by=its probe/)
  assert.equal(paid, boss, 'what was settled belongs to the attempt that settled it')
  the(told, /^span \S+ below \S+ \| invoke_agent clerk /)
  the(told, /^span \S+ below \S+ \| chat \S+ .*gen_ai\.usage\.input_tokens=\d+/)
  the(told, /^metric gen_ai\.client\.token\.usage /)
  the(told, /^metric holdfast\.runs 2 .*succeeded/)
}

/** Prints what the collector prints, until it has heard of the figures: they are sent last. */
async function hear(lines: AsyncIterator<string>): Promise<string[]> {
  const told: string[] = []
  while (!told.some((line) => line.startsWith('metric holdfast.inbox'))) {
    const { value, done } = await lines.next()
    if (done === true) break
    told.push(value)
    console.log(value)
  }
  return told
}

function the(told: readonly string[], pattern: RegExp): string | undefined {
  const found = told.map((line) => pattern.exec(line)).find((match) => match !== null)
  assert.ok(found, `nobody was told of ${pattern}`)
  return found[1]
}
