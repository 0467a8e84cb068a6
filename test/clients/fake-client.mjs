#!/usr/bin/env node
/*
 * A program with the manners of Claude Code: sessions are files, output is a stream of JSON. What it does the prompt says.
 * It shares no code with us.
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const args = process.argv.slice(2)
const after = (flag) => (args.includes(flag) ? args[args.indexOf(flag) + 1] : undefined)
const [begun, resumed] = [after('--session-id'), after('--resume')]
const session = begun ?? resumed
const place = process.env.FAKE_CLIENT
const file = join(place, session)
const prompt = readFileSync(0, 'utf8')

const say = (event) => process.stdout.write(`${JSON.stringify({ session_id: session, ...event })}\n`)
const result = (more) => say({ type: 'result', subtype: 'success', is_error: false, ...more })
const hang = () => setInterval(() => {}, 1000)

appendFileSync(join(place, 'log'), `${JSON.stringify({ args, prompt, home: process.env.HOLDFAST_RUN })}\n`)
if (resumed !== undefined && !existsSync(file)) {
  process.stderr.write(`No conversation found with session ID: ${resumed}\n`)
  process.exit(1)
}
if (begun !== undefined && existsSync(file)) {
  process.stderr.write(`Error: Session ID ${begun} is already in use.\n`)
  process.exit(1)
}
appendFileSync(file, `${prompt.replaceAll('\n', ' ')}\n`)
say({ type: 'system', subtype: 'init', model: 'claude-opus-5-5' })

const turns = () => readFileSync(file, 'utf8').trim().split('\n')
const reply = (text) => {
  const usage = { input_tokens: 10, cache_read_input_tokens: 4, cache_creation_input_tokens: 2, output_tokens: 3 }
  say({ type: 'assistant', message: { id: 'last', model: 'm', content: [{ type: 'text', text }], usage } })
  // As the real one: the cost is that of the session so far, the usage that of the turn.
  result({ result: text, usage, total_cost_usd: 0.25 * turns().length })
}
const bash = (id, command, more = {}) =>
  say({
    type: 'assistant',
    message: {
      id,
      model: 'm',
      content: [{ type: 'tool_use', id: `t-${id}`, name: 'Bash', input: { command } }],
      ...more,
    },
  })
const bashEnds = (id, content) =>
  say({ type: 'user', message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: `t-${id}`, content }] } })

const touched = /TOUCH (\S+)$/.exec(prompt)
if (touched !== null) writeFileSync(touched[1], '')

if (prompt.includes('HANG')) {
  bash('one', 'make')
  writeFileSync(join(place, 'hanging'), String(process.pid))
  hang()
} else if (prompt.includes('PLAIN')) {
  process.stdout.write('no JSON at all\n')
} else if (prompt.includes('CUT')) {
  process.stdout.write('{"type":"assistant","mess')
  process.exitCode = 1
} else if (prompt.includes('REFUSED')) {
  result({ is_error: true, api_error_status: 401, result: 'Failed to authenticate' })
  process.exitCode = 1
} else if (prompt.includes('LONG')) {
  for (let n = 0; n < 300; n += 1) {
    bash(`m${n}`, `echo ${n}`)
    bashEnds(`m${n}`, 'x'.repeat(1000))
  }
  reply('long')
} else if (prompt.includes('TOOL')) {
  bash('one', 'echo hi')
  bashEnds('one', 'hi')
  reply('done')
} else {
  reply(`I know ${turns().join(' | ')}`)
}
