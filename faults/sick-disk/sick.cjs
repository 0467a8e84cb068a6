/*
 * Loaded before the program (`node --require sick.cjs`): below one folder, the nth call that touches a file fails, or all from the
 * nth on. SQLite does not go through here; strace makes its calls fail.
 *
 *   SICK=ERRNO:NTH:once|on   which error, and when; SICK_BELOW the folder; SICK_WHO `program` or `supervisor`
 *   SICK_TOLD=FILE           each call that failed writes a line there, as strace does
 *   SICK_COUNT=FILE          nothing fails: how many calls could is written there, { who, counts } a line
 */
'use strict'

const children = require('node:child_process')
const fs = require('node:fs')
const { syncBuiltinESMExports } = require('node:module')
const { constants } = require('node:os')

const {
  SICK,
  SICK_BELOW: below = '/nowhere',
  SICK_WHO: who = 'program',
  SICK_COUNT: countFile,
  SICK_TOLD: toldFile,
} = process.env
const isSupervisor = process.argv.some((word) => word.includes('supervisor-main'))
const isMeant = isSupervisor === (who === 'supervisor')
const [errno = '', nth = '0', mode = 'once'] = (SICK ?? '').split(':')

/** Which calls a disk of that kind refuses. */
const REFUSED = {
  EIO: () => true,
  ENOSPC: (name, flags) =>
    /^(write|append|mkdir|rename|link|copy|truncate|chmod)/.test(name) ||
    (name === 'open' && /[wa]/.test(String(flags))),
  EMFILE: (name) => /^(open|read(File|dir)|write(File)?|append|copy)/.test(name),
}
const counts = { EIO: 0, ENOSPC: 0, EMFILE: 0 }
const names = new Map()
const handles = new WeakMap()
const append = fs.appendFileSync

const isBelow = (place) => typeof place === 'string' && (place === below || place.startsWith(`${below}/`))

/** Throws if this call is the one. */
function touch(name, place, flags) {
  if (!isBelow(place)) return
  for (const kind of Object.keys(REFUSED)) if (REFUSED[kind](name, flags)) counts[kind] += 1
  if (SICK === undefined || !isMeant || !REFUSED[errno](name, flags)) return
  const isNow = mode === 'on' ? counts[errno] >= Number(nth) : counts[errno] === Number(nth)
  // Whoever is started again in its place meets it no more.
  if (!isNow || (mode === 'once' && fs.existsSync(toldFile))) return
  append(toldFile, `${(Date.now() / 1000).toFixed(3)} ${name} '${place}' ${errno} (INJECTED)\n`)
  const message = `${errno}: injected, ${name} '${place}'`
  throw Object.assign(new Error(message), { code: errno, errno: -constants.errno[errno], syscall: name, path: place })
}

const placeOf = (given) =>
  typeof given === 'number' ? names.get(given) : typeof given === 'object' ? handles.get(given) : given

/** Of a call with two places the one that is below. */
function touchEither(method, first, second) {
  const place = placeOf(first)
  const isOther = (method === 'rename' || method === 'link') && !isBelow(place)
  touch(method, isOther ? second : place, second)
}

/** Some are made of others: each is one call. */
let isInside = false

function patchSync(method) {
  const original = fs[`${method}Sync`]
  fs[`${method}Sync`] = function (first, second, ...rest) {
    if (isInside) return original.call(this, first, second, ...rest)
    touchEither(method, first, second)
    isInside = true
    try {
      const result = original.call(this, first, second, ...rest)
      if (method === 'open') names.set(result, first)
      return result
    } finally {
      isInside = false
    }
  }
}

function patchPromised(method) {
  const original = fs.promises[method]
  fs.promises[method] = async function (first, second, ...rest) {
    touchEither(method, first, second)
    const result = await original.call(this, first, second, ...rest)
    if (method === 'open') patchHandle(result, first)
    return result
  }
}

function patchHandle(handle, place) {
  for (const method of [
    'write',
    'writeFile',
    'appendFile',
    'sync',
    'datasync',
    'truncate',
    'read',
    'readFile',
    'chmod',
  ]) {
    const original = handle[method]
    handle[method] = async function (...args) {
      touch(method, place)
      return original.apply(this, args)
    }
  }
}

const BOTH = 'open writeFile appendFile readFile readdir mkdir rename link unlink copyFile chmod'.split(' ')
for (const method of [...BOTH, 'write', 'fsync', 'ftruncate']) patchSync(method)
for (const method of [...BOTH, 'rm']) patchPromised(method)

const spawn = children.spawn
children.spawn = function (program, args, options, ...rest) {
  if (Array.isArray(args) && args.some((each) => String(each).includes('supervisor-main'))) {
    const env = { SICK, SICK_BELOW: below, SICK_WHO: who, SICK_COUNT: countFile, SICK_TOLD: toldFile }
    for (const [key, value] of Object.entries(env)) if (value !== undefined) options.env[key] = value
    return spawn.call(this, program, ['--require', __filename, ...args], options, ...rest)
  }
  return spawn.call(this, program, args, options, ...rest)
}
syncBuiltinESMExports()

if (countFile !== undefined)
  process.on('exit', () =>
    append(countFile, `${JSON.stringify({ who: isSupervisor ? 'supervisor' : 'program', counts })}\n`),
  )
for (const name of ['NODE_OPTIONS', 'SICK', 'SICK_BELOW', 'SICK_WHO', 'SICK_COUNT', 'SICK_TOLD'])
  delete process.env[name]
