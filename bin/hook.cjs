/*
 * What Claude Code, Codex and Gemini CLI start at each of their events: `node hook.cjs claude`, with the event on standard
 * input. It hands the event to the daemon; without one it works on the store itself; when even that fails it leaves a record
 * in the spool. It never keeps its client waiting for long, and blocks it only when there is something in the inbox.
 *
 * A client waits for this program at the end of every turn, so it loads nothing but what Node has in it already: importing
 * the real program takes four times as long as starting Node. bench/hooks measures it.
 */
'use strict'

const fs = require('node:fs')
const path = require('node:path')

const CLIENTS = ['claude', 'codex', 'gemini']
/** As LIMITS.hookBytes: what is longer is not an event. */
const MOST_BYTES = 4 * 1024 * 1024
/** As LIMITS.spoolRecords. */
const MOST_RECORDS = 10_000
/** What a client waits at most. Claude Code and Codex give the end of a session about a second. */
const WHOLE_MS = 5_000
const WHOLE_MS_AT_END = 900
/** The shares of it after which the daemon, and then the store, is given up. */
const DAEMON_SHARE = 0.4
const STORE_SHARE = 0.9
/** What makes Claude Code begin a turn when a hook in the background ends with it. Of any other hook it would be a block. */
const WAKES = 2
const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
/** Between a client and its hook: a shell, a launcher, whatever somebody put around it. */
const MOST_LEVELS = 6
/** Between a client and the session that started it. As src/cli/around/session-above.ts. */
const MOST_ABOVE = 16
const SHELLS = /^(sh|bash|dash|zsh|fish|ksh|ash|env|timeout)$/
/** A clone runs its sources, an installed package its build. */
const PROGRAMS = ['src/hooks/program.ts', 'dist/hooks/program.js']

/** Returns the exit code: 0, or 1 when something could not be kept or only in the spool. Not 2, which would block, but by a waiter. */
async function main(argv, env = process.env) {
  const startedAt = monotonicMs()
  const call = readArguments(argv, env)
  if (call === undefined) return complain('say for whom: hook.cjs claude, codex or gemini')
  if (call.wait) return waitBeside(call, env)
  const said = call.argument === undefined ? await readInput(WHOLE_MS) : wholeText(Buffer.from(call.argument))
  const fields = parsed(said.input)
  const told = describe(call, said, fields, env)
  const wholeMs = fields?.hook_event_name === 'SessionEnd' ? WHOLE_MS_AT_END : WHOLE_MS
  const left = (share) => wholeMs * share - (monotonicMs() - startedAt)
  const { answer, trouble } = await hand(call, told, left, env)
  if (fields?.hook_event_name === 'SessionStart') setUpSession(call, told, fields, answer, env)
  if (answer?.hold !== undefined) return showDecided(call, told, answer.hold)
  if (answer !== undefined) return (await show(call, told, answer)) ? 0 : 1
  return complain(keepInSpool(call, told, trouble))
}

/**
 * Beside an idle session, in the background: exit code 2 makes its client begin a turn, at whose end the messages come. In
 * print mode a client waits for this hook as for any other, and nobody sits there idle.
 */
async function waitBeside(call, env) {
  const said = await readInput(WHOLE_MS)
  const sessionId = parsed(said.input)?.session_id
  if (env.CLAUDE_CODE_ENTRYPOINT !== 'cli' || typeof sessionId !== 'string' || !SESSION_ID.test(sessionId)) return 0
  const told = { client: call.client, ...said, process: clientProcess(call.client, env) }
  if (!isOnlyWaiter(noteFile(call, sessionId, 'waiter'), told.process)) return 0
  const { waitBeside: untilWoken } = await program()
  if (!(await untilWoken({ home: call.home, store: call.store }, told))) return 0
  fs.writeSync(2, 'messages are waiting in your Holdfast inbox; the end of this turn brings them')
  return WAKES
}

/** One for each process of a client. Two would do no harm: the store lets one of them wake it. */
function isOnlyWaiter(file, client) {
  const known = readJson(file)
  if (known?.client === client.pid && isAlive(known)) return false
  makeFolder(path.dirname(file))
  const temporary = `${file}.${process.pid}.tmp`
  const own = { pid: process.pid, startTime: ownStartTime(), client: client.pid }
  fs.writeFileSync(temporary, JSON.stringify(own), { mode: 0o600 })
  fs.renameSync(temporary, file)
  return true
}

function ownStartTime() {
  try {
    return statOf(process.pid).startTime
  } catch {
    return undefined
  }
}

/** A person is asked, and the client's dialog is open: whoever is first answers it. */
async function showDecided(call, told, hold) {
  try {
    const { hearDecided } = await program()
    return (await show(call, told, await hearDecided({ home: call.home, store: call.store }, told, hold))) ? 0 : 1
  } catch (error) {
    return complain(`it can only be answered in the client: ${error.message}`)
  }
}

/** Not `performance`: its module is loaded when it is first used. */
function monotonicMs() {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}

function complain(sentence) {
  fs.writeSync(2, `holdfast: ${sentence}\n`)
  return 1
}

/** `hook.cjs CLIENT [--home DIR] [--store URL] [--start-daemon] [--permit|--settle|--wait] [JSON]`; unknown flags are for others to know it by. */
function readArguments(argv, env) {
  const words = [...argv]
  const client = words.shift()
  if (!CLIENTS.includes(client)) return undefined
  const flags = {}
  let argument
  while (words.length > 0) {
    const word = words.shift()
    if (word === '--home' || word === '--store') flags[word.slice(2)] = words.shift()
    else if (word === '--start-daemon') flags.startDaemon = true
    else if (word === '--permit' || word === '--settle') flags.role = word.slice(2)
    else if (word === '--wait') flags.wait = true
    else if (!word.startsWith('--')) argument = word
  }
  const home = path.resolve(flags.home || env.HOLDFAST_HOME || defaultHome(env))
  return {
    client,
    argument,
    home,
    store: flags.store || env.HOLDFAST_STORE || undefined,
    startDaemon: flags.startDaemon,
    role: flags.role,
    wait: flags.wait,
  }
}

function defaultHome(env) {
  return path.join(env.XDG_STATE_HOME || path.join(env.HOME || '/', '.local', 'state'), 'holdfast')
}

/** All that comes, up to the limit; of more only the beginning, and how much it was. */
function readInput(ms) {
  return new Promise((resolve) => {
    const chunks = []
    const buffer = Buffer.allocUnsafe(64 * 1024)
    let bytes = 0
    const done = () => {
      clearTimeout(timer)
      const all = Buffer.concat(chunks)
      resolve(bytes > MOST_BYTES ? { input: all.subarray(0, 1_000).toString(), bytes } : wholeText(all))
    }
    const timer = setTimeout(done, ms)
    const next = () => fs.read(0, buffer, 0, buffer.length, null, take)
    const take = (error, count) => {
      if (error?.code === 'EAGAIN') return void setTimeout(next, 5)
      if (error !== null || count === 0) return done()
      bytes += count
      if (bytes <= MOST_BYTES) chunks.push(Buffer.from(buffer.subarray(0, count)))
      next()
    }
    next()
  })
}

const wholeText = (all) => ({ input: all.toString(), bytes: all.length })

function parsed(text) {
  try {
    const value = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** The record that goes to the daemon, to the store, into the spool: see src/hooks/told.ts. */
function describe(call, { input, bytes }, fields, env) {
  const note = takeNumber(call, fields)
  const [socket] = (env.TMUX ?? '').split(',')
  const client = clientProcess(call.client, env)
  return {
    id: `${Date.now()}-${process.pid}`,
    client: call.client,
    input,
    bytes,
    ...note,
    process: client,
    ...(call.role === undefined ? {} : { role: call.role }),
    ...(env.CLAUDE_CODE_ENTRYPOINT === 'cli' ? { isAttended: true } : {}),
    ...(env.HOLDFAST_THREAD ? { startedFrom: env.HOLDFAST_THREAD } : {}),
    ...(env.HOLDFAST_RUN ? { startedBy: env.HOLDFAST_RUN } : {}),
    ...(env.CODEX_THREAD_ID ? { codexAround: env.CODEX_THREAD_ID } : {}),
    ...(env.CODEX_THREAD_ID || env.GEMINI_CLI ? { above: processesAbove(client, env) } : {}),
    ...(socket && env.TMUX_PANE ? { tmux: { socket, pane: env.TMUX_PANE } } : {}),
  }
}

function noteFile({ client, home }, sessionId, ending) {
  return path.join(home, 'hooks', 'sessions', `${client}-${sessionId}.${ending}`)
}

/**
 * Each event of a session gets a number before anybody is told, so that it can be told twice and counts once. Subagents, tools
 * and questions to a person come side by side: each appends a line of its own, and its number is where that line stands. The
 * count begins at the clock, so that it goes on above whatever it was when the file is lost; it is not synced, so a
 * restart of the machine begins another.
 */
function takeNumber(call, fields) {
  const sessionId = fields?.session_id
  if (typeof sessionId !== 'string' || !SESSION_ID.test(sessionId)) return {}
  const shown = readShown(noteFile(call, sessionId, 'shown'))
  try {
    return { ordinal: appendLine(noteFile(call, sessionId, `${bootId().slice(0, 8)}.log`)), shown }
  } catch {
    // A full disk: the store will say so, and a number from the clock is as good.
    return { ordinal: Date.now(), shown }
  }
}

function readShown(file) {
  try {
    return fs.readFileSync(file, 'utf8') || null
  } catch {
    return null
  }
}

function appendLine(file) {
  const line = `${process.pid}-${process.hrtime.bigint().toString(36)}`
  let log
  try {
    log = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_APPEND)
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
    beginLog(file)
    log = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_APPEND)
  }
  try {
    fs.writeSync(log, `${line}\n`)
    const lines = fs.readFileSync(file, 'latin1').split('\n')
    const place = lines.indexOf(line)
    if (place < 1) throw new Error('it is not there')
    return Number(lines[0]) + place
  } finally {
    fs.closeSync(log)
  }
}

/** Of several who begin it one wins, and nobody sees it without its first line. */
function beginLog(file) {
  makeFolder(path.dirname(file))
  createWhole(file, `${Date.now()}\n`, {})
}

function createWhole(file, content, options) {
  // Not by the process number alone: in a container it comes again soon, and one that was killed here left its file.
  const temporary = `${file}.${process.pid}-${process.hrtime.bigint().toString(36)}.tmp`
  fs.writeFileSync(temporary, content, { mode: 0o600, ...options })
  try {
    fs.linkSync(temporary, file)
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
  } finally {
    fs.unlinkSync(temporary)
  }
}

/** Empty where the system does not say. */
function bootId() {
  try {
    return fs.readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
  } catch {
    return ''
  }
}

function readJson(file) {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

/**
 * Not the recursive form of Node: where nothing can be made, as in /proc, it never ends. Its name is synced: all that is stored
 * below it, the home folder of a first hook included, is reached by it.
 */
function makeFolder(folder, isAgain = false) {
  try {
    fs.mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if (error.code === 'EEXIST') return
    const parent = path.dirname(folder)
    // A second time: the parent is there and says that it is not, as in /proc.
    if (error.code !== 'ENOENT' || parent === folder || isAgain) throw error
    // Looked for and not found, it may be there by now: of several hooks at once each makes it.
    makeFolder(parent)
    return makeFolder(folder, true)
  }
  try {
    syncFolder(path.dirname(folder))
  } catch (error) {
    // Of a folder that may be written and not read, and on a file system that cannot, no more is to be had.
    if (!['EACCES', 'EINVAL', 'ENOTSUP'].includes(error.code)) throw error
  }
}

/** Claude says who it is. Of the others it is the process of that name above us, or the first that is no shell. */
function clientProcess(client, env) {
  const own = client === 'claude' ? Number(env.CLAUDE_PID) : Number.NaN
  try {
    const row = Number.isSafeInteger(own) && own > 1 ? statOf(own) : clientAbove(client)
    return {
      pid: row.pid,
      startTime: row.startTime,
      boot: bootId(),
      pidNamespace: fs.readlinkSync('/proc/self/ns/pid'),
    }
  } catch {
    return { pid: Number.isSafeInteger(own) ? own : process.ppid }
  }
}

/**
 * Codex and Gemini CLI cannot tell what they start whose child it is; by its process it can be known (src/sessions/parent.ts). What is around
 * a run is not looked at: it has a thread of its own, and all that belongs to it carries its mark.
 */
function processesAbove(client, env) {
  const mark = env.HOLDFAST_MARK?.split('.').at(-1)
  const above = []
  try {
    let { parent } = statOf(client.pid)
    while (client.startTime !== undefined && above.length < MOST_ABOVE && parent > 1) {
      if (mark !== undefined && !carries(parent, mark)) break
      const { startTime, parent: next } = statOf(parent)
      above.push({ ...client, pid: parent, startTime })
      parent = next
    }
  } catch {
    // One has ended meanwhile, or is somebody else's: what is above it cannot be told.
  }
  return above
}

function carries(pid, mark) {
  const entries = fs.readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0')
  return entries.some((entry) => entry.startsWith('HOLDFAST_MARK=') && entry.split(/[=.]/).includes(mark))
}

function clientAbove(client) {
  const above = [statOf(process.ppid)]
  while (above.length < MOST_LEVELS && above.at(-1).parent > 1) above.push(statOf(above.at(-1).parent))
  const programs = above.filter(({ name }) => !SHELLS.test(name))
  const named = programs.find(({ name }) => isNameOf(client, name))
  return named ?? programs.find(({ pid }) => isNameOf(client, scriptOf(pid))) ?? programs[0] ?? above[0]
}

/** `gemini`, `gemini.js`, `codex-x86_64-un` (15 characters of a name are kept): not `gemini-watch`. As src/cli/around/session-above.ts. */
function isNameOf(client, name) {
  return new RegExp(`^${client}(-cli)?(-(x86_64|x64|aarch64|arm64)[-\\w]*)?(\\.[cm]?js)?$`).test(name)
}

/** Gemini CLI is a script, and its process has the name of Node. A program around our hook has ours among its later words. */
function scriptOf(pid) {
  try {
    const words = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    const [script = ''] = words.slice(1).filter((word) => !word.startsWith('-'))
    return path.basename(script)
  } catch {
    // It has ended meanwhile, or is somebody else's.
    return ''
  }
}

function statOf(pid) {
  const text = fs.readFileSync(`/proc/${pid}/stat`, 'latin1')
  const [open, close] = [text.indexOf('('), text.lastIndexOf(')')]
  const rest = text.slice(close + 2).split(' ')
  return { pid, name: text.slice(open + 1, close), parent: Number(rest[1]), startTime: Number(rest[19]) }
}

/** The daemon, else the store. */
async function hand(call, told, left, env) {
  const { daemon, trouble } = await askDaemon(call, told, left(DAEMON_SHARE), env)
  if (daemon !== undefined) return { answer: daemon }
  try {
    const { hearDirectly } = await program()
    const answer = await within(left(STORE_SHARE), hearDirectly({ home: call.home, store: call.store }, told))
    return { answer }
  } catch (error) {
    return { trouble: [trouble, error.message].filter(Boolean).join('; ') }
  }
}

async function program() {
  const entry = PROGRAMS.map((name) => path.join(__dirname, '..', name)).find((file) => fs.existsSync(file))
  if (entry === undefined) throw new Error('the program is not installed completely')
  require('./compiled-code.cjs').keepCompiledCode(path.dirname(__dirname))
  return import(require('node:url').pathToFileURL(entry).href)
}

function within(ms, promise) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the store took too long')), Math.max(ms, 0))
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** HTTP by hand: `node:http` alone takes longer to load than Node takes to start. */
async function askDaemon(call, told, ms, env) {
  const place = env.HOLDFAST_URL ? { url: env.HOLDFAST_URL } : readJson(path.join(call.home, 'daemon.json'))
  const address = /^http:\/\/(127\.0\.0\.1|localhost):(\d{1,5})\/?$/.exec(place?.url ?? '')
  if (address === null) return {}
  try {
    const token = env.HOLDFAST_TOKEN || readToken(call.home)
    const instance = isAlive(place) ? undefined : place.instance
    const speak = { host: address[1], port: Number(address[2]), instance, token }
    return { daemon: await exchange(speak, told, ms) }
  } catch (error) {
    return { trouble: `the daemon did not answer: ${error.message}` }
  }
}

/** One that is good for telling what happened, and for nothing else; daemons of older versions made none. */
function readToken(home) {
  try {
    return fs.readFileSync(path.join(home, 'record-token'), 'utf8').trim()
  } catch {
    return fs.readFileSync(path.join(home, 'token'), 'utf8').trim()
  }
}

/**
 * After a crash another program may have the daemon's port, and must not see the token. As long as the process lives that
 * noted the port, it is the daemon's.
 */
function isAlive({ pid, startTime }) {
  try {
    return startTime !== undefined && statOf(pid).startTime === startTime
  } catch {
    return false
  }
}

/** Where that cannot be seen: first who is there, then the event, on one connection. */
function exchange({ host, port, instance, token }, told, ms) {
  const { connect } = require('node:net')
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port })
    const give = (settle, value) => {
      clearTimeout(timer)
      socket.destroy()
      settle(value)
    }
    const timer = setTimeout(() => give(reject, new Error('it took too long')), Math.max(ms, 0))
    const ask = (head, body = '') =>
      socket.write(
        `${head} HTTP/1.1\r\nHost: ${host}:${port}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${
          body === '' ? '' : `Content-Type: application/json\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n`
        }\r\n${body}`,
      )
    let received = Buffer.alloc(0)
    let met = instance === undefined
    socket.on('connect', () => (met ? ask('POST /api/v1/hooks', JSON.stringify(told)) : ask('GET /api/v1/health')))
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      const response = readResponse(received)
      if (response === undefined) return
      received = received.subarray(response.length)
      if (response.status !== 200) return give(reject, new Error(`it said ${response.status}`))
      if (met) return give(resolve, JSON.parse(response.body))
      if (JSON.parse(response.body).instance !== instance)
        return give(reject, new Error('another program has its port'))
      met = true
      ask('POST /api/v1/hooks', JSON.stringify(told))
    })
    socket.on('error', (error) => give(reject, error))
    socket.on('close', () => give(reject, new Error('it hung up')))
  })
}

/** Undefined until it is there as a whole. */
function readResponse(received) {
  const end = received.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const head = received.subarray(0, end).toString('latin1')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1])
  const size = /^content-length: *(\d+)\r?$/im.exec(head)?.[1]
  if (size !== undefined) {
    const length = end + 4 + Number(size)
    return received.length < length
      ? undefined
      : { status, length, body: received.subarray(end + 4, length).toString() }
  }
  if (/^transfer-encoding: *chunked\r?$/im.test(head)) return readChunks(received, end + 4, status)
  throw new Error('it answers in a way that is not understood')
}

function readChunks(received, start, status) {
  const parts = []
  for (let at = start; ;) {
    const line = received.indexOf('\r\n', at)
    if (line === -1) return undefined
    const size = Number.parseInt(received.subarray(at, line).toString('latin1'), 16)
    const next = line + 2 + size + 2
    if (Number.isNaN(size) || received.length < next) return undefined
    if (size === 0) return { status, length: next, body: Buffer.concat(parts).toString() }
    parts.push(received.subarray(line + 2, line + 2 + size))
    at = next
  }
}

/** What the session starts is to know whose child it is. Its own run changes from turn to turn, so none is named. */
function setUpSession(call, told, fields, answer, env) {
  const threadId = answer?.threadId ?? (told.ordinal === undefined ? undefined : `${call.client}-${fields.session_id}`)
  const lines = [
    ...(threadId === undefined ? [] : [`export HOLDFAST_THREAD=${quoted(threadId)}`, 'unset HOLDFAST_RUN']),
    `export HOLDFAST_HOME=${quoted(call.home)}`,
    ...(call.store === undefined ? [] : [`export HOLDFAST_STORE=${quoted(call.store)}`]),
  ]
  if (call.client === 'claude' && env.CLAUDE_ENV_FILE) {
    try {
      fs.appendFileSync(env.CLAUDE_ENV_FILE, `${lines.join('\n')}\n`)
    } catch (error) {
      complain(`what the session starts will not know its thread: ${error.message}`)
    }
  }
  if (call.startDaemon === true) startDaemon(call)
}

const quoted = (word) => `'${word.replaceAll("'", `'\\''`)}'`

/** A second daemon of a home folder refuses by itself. */
function startDaemon({ home, store }) {
  if (readJson(path.join(home, 'daemon.json')) !== undefined) return
  const launcher = path.join(__dirname, 'holdfast')
  const args = [launcher, '--home', home, ...(store === undefined ? [] : ['--store', store]), 'up']
  const { spawn } = require('node:child_process')
  spawn(process.execPath, args, { detached: true, stdio: 'ignore', cwd: home })
    .on('error', () => {})
    .unref()
}

/** Noted after the client has it: what it was not given must come again. */
async function show(call, told, { output, deliveryId }) {
  if (output === '') return true
  require('./whole-output.cjs').writeWhole(process.stdout)
  const isGiven = await new Promise((resolve) => {
    process.stdout.on('error', () => resolve(false))
    process.stdout.write(output, (error) => resolve(error == null))
  })
  if (!isGiven || deliveryId === undefined || told.ordinal === undefined) return isGiven
  try {
    noteShown(noteFile(call, parsed(told.input).session_id, 'shown'), deliveryId)
  } catch (error) {
    complain(`it will be given these messages again: ${error.message}`)
  }
  return true
}

function noteShown(file, deliveryId) {
  const temporary = `${file}.${process.pid}.tmp`
  fs.writeFileSync(temporary, deliveryId, { mode: 0o600 })
  fs.renameSync(temporary, file)
}

let spooled = 0

/** Synced, under its last name only when it is whole: the next hook or the daemon takes it up, once. */
function keepInSpool(call, told, trouble) {
  const folder = path.join(call.home, 'spool')
  try {
    makeFolder(folder)
    if (fs.readdirSync(folder).length >= MOST_RECORDS)
      throw new Error(`there are ${MOST_RECORDS} records in it already`)
    // In containers that share a home folder two may have one process number, in one millisecond too.
    const unique = `${process.pid}-${(spooled += 1)}-${process.hrtime.bigint().toString(36)}`
    const name = `${String(Date.now()).padStart(15, '0')}-${unique}`
    const temporary = path.join(folder, `.${name}.tmp`)
    const file = fs.openSync(temporary, 'wx', 0o600)
    try {
      fs.writeFileSync(file, sealed(call.home, JSON.stringify(told)))
      fs.fsyncSync(file)
    } finally {
      fs.closeSync(file)
    }
    fs.renameSync(temporary, path.join(folder, `${name}.json`))
    syncFolder(folder)
    return `the event is kept in ${folder} until the store can be reached (${trouble})`
  } catch (error) {
    return `the event is LOST: it could be kept neither in the store (${trouble}) nor in ${folder} (${error.message})`
  }
}

/**
 * What a person or a tool said may have secrets in it, so all of it is encrypted, under the key of src/secrets/key.ts. Loaded only
 * here: it takes longer than everything else that this program does.
 */
function sealed(home, text) {
  const { createCipheriv, createHash, hkdfSync, randomBytes } = require('node:crypto')
  const key = secretKey(home, randomBytes)
  const derived = (use) => Buffer.from(hkdfSync('sha256', key, '', `holdfast ${use}`, 32))
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', derived('encrypt'), nonce)
  const bytes = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  const keyId = createHash('sha256').update(derived('id')).digest('hex').slice(0, 8)
  return JSON.stringify({ sealed: bytes.toString('base64url'), keyId })
}

function secretKey(home, randomBytes) {
  const file = process.env.HOLDFAST_SECRET_KEY_FILE || path.join(home, 'secrets.key')
  if (!fs.existsSync(file)) {
    createWhole(file, `${randomBytes(32).toString('hex')}\n`, { flag: 'wx', flush: true })
    syncFolder(path.dirname(file))
  }
  return Buffer.from(fs.readFileSync(file, 'utf8').trim(), 'hex')
}

function syncFolder(folder) {
  const handle = fs.openSync(folder, 'r')
  try {
    fs.fsyncSync(handle)
  } finally {
    fs.closeSync(handle)
  }
}

module.exports = { main }

if (require.main === module) {
  process.on('uncaughtException', (error) => process.exit(complain(`the hook failed: ${error.message}`)))
  // Nothing that is still open may keep the client waiting.
  void main(process.argv.slice(2)).then((code) => process.exit(code))
}
