/*
 * Loaded before the program (`node --require doom.cjs`), to kill it with SIGKILL when it comes to a named point the nth time:
 *
 *   DOOM=POINT:NTH          as `commit before:3`; `moment:120` is so many milliseconds after it was loaded
 *   DOOM=POINT:NTH:both     whoever started it is killed with it
 *
 * A daemon that is told to by SIGWINCH reads another doom from the file that DOOM_FILE names: { "who": "daemon", "doom": … } is its own,
 * { "who": "supervisor", … } that of the next supervisor it starts. What is started from here is not doomed otherwise.
 */
'use strict'

const children = require('node:child_process')
const fs = require('node:fs')
const { syncBuiltinESMExports } = require('node:module')
const net = require('node:net')
const { StatementSync } = require('node:sqlite')

/** Where a supervisor says that it dies now: it is nobody's child that could be waited for. */
const told = process.env.DOOM_TOLD
const file = process.env.DOOM_FILE

/** Whoever started it; when that has died, somebody else is its parent. */
const parent = process.ppid

let doom
let forSupervisor

function arm(text) {
  const [point, nth, both] = (text ?? '').split(':')
  if (point === '') return
  doom = { point, left: Number(nth), both: both === 'both' }
  if (point === 'moment') setTimeout(die, Number(nth)).unref()
}

function die() {
  const { both, point } = doom
  doom = undefined
  if (told !== undefined) fs.appendFileSync(told, `${Date.now()} ${point}\n`)
  if (both && process.ppid === parent) process.kill(parent, 'SIGKILL')
  process.kill(process.pid, 'SIGKILL')
}

function pass(point) {
  if (doom?.point !== point) return
  doom.left -= 1
  if (doom.left <= 0) die()
}

/** Before it is done, and once it is done. */
function around(name, work) {
  pass(`${name} before`)
  const result = work()
  if (!(result instanceof Promise)) {
    pass(`${name} after`)
    return result
  }
  return result.then((value) => {
    pass(`${name} after`)
    return value
  })
}

function watch(owner, method, nameOf) {
  const original = owner[method]
  owner[method] = function (...args) {
    const name = nameOf(args, this)
    return name === undefined ? original.apply(this, args) : around(name, () => original.apply(this, args))
  }
}

const TRANSACTIONS = { 'begin immediate': 'begin', commit: 'commit' }
for (const method of ['run', 'get', 'all'])
  watch(StatementSync.prototype, method, (_, { sourceSQL }) => TRANSACTIONS[sourceSQL] ?? 'statement')
for (const method of ['rename', 'link', 'unlink', 'mkdir']) {
  watch(fs.promises, method, () => 'file')
  watch(fs, `${method}Sync`, () => 'file')
}
// To write: whatever is loaded is opened too.
for (const [owner, method] of [
  [fs.promises, 'open'],
  [fs, 'openSync'],
])
  watch(owner, method, ([, flags]) => (typeof flags === 'string' && /[wa]/.test(flags) ? 'file' : undefined))
watch(fs, 'writeSync', () => 'file')
watch(net.Socket.prototype, 'write', () => 'socket')
watch(children, 'spawn', (args) => {
  doomSupervisor(args)
  return 'spawn'
})
syncBuiltinESMExports()

function doomSupervisor([, args, options]) {
  if (forSupervisor === undefined || !args.some((each) => each.includes('supervisor-main'))) return
  args.unshift('--require', __filename)
  Object.assign(options.env, { DOOM: forSupervisor, DOOM_TOLD: `${file}.told` })
  forSupervisor = undefined
}

if (file !== undefined) {
  process.on('SIGWINCH', () => {
    const next = JSON.parse(fs.readFileSync(file, 'utf8'))
    if (next.who === 'daemon') arm(next.doom)
    else forSupervisor = next.doom
  })
}
arm(process.env.DOOM)
for (const name of ['NODE_OPTIONS', 'DOOM', 'DOOM_FILE', 'DOOM_TOLD']) delete process.env[name]
