/**
 * Format, lint, types and house rules: the scripts of package.json that are named `check:…`, two at a time. All of them are
 * run, and what one that fails has said is shown.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** As many as the cores of a small machine. More would want the memory of all of them at once. */
const AT_ONCE = 2

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
const waiting = Object.entries(scripts).filter(([name]) => name.startsWith('check:'))
if (waiting.length === 0) throw new Error('there is nothing to check: package.json has no script that is named check:…')

function run(command: string): Promise<{ readonly code: number | null; readonly said: string }> {
  const child = spawn(command, { shell: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, said }))
  })
}

async function runWhatWaits(): Promise<void> {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const [name, command] = next
    const begun = performance.now()
    const { code, said } = await run(command)
    const took = `${name}, ${((performance.now() - begun) / 1000).toFixed(1)} s`
    process.stdout.write(code === 0 ? `good: ${took}\n` : `${said}\nNOT good: ${took}: ${command}\n`)
    if (code !== 0) process.exitCode = 1
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, runWhatWaits))
