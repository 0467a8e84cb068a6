/*
 * Compiled code is kept between starts: with it a command starts in half the time. Not where Node would keep it by itself,
 * below the folder for everybody's temporary files: whoever comes there first could put code of their own in the place of
 * ours. Read by a Node that may be too old, as the launcher is: the same rules hold.
 */
/* oxlint-disable unicorn/prefer-node-protocol -- a Node from 2019 does not know it. */
'use strict'

const fs = require('fs')
const path = require('path')

/** A clone has a place of its own; an installed package may belong to somebody else, and then it is the user's. */
function keepCompiledCode(root) {
  const nodeModule = require('module')
  if (nodeModule.enableCompileCache === undefined || process.env.NODE_COMPILE_CACHE) return
  const folder = fs.existsSync(path.join(root, 'src')) ? path.join(root, 'node_modules', '.cache') : usersCache()
  const own = path.join(folder, 'holdfast')
  if (isFolder(folder) && isFolder(own)) nodeModule.enableCompileCache(own)
}

function usersCache() {
  return process.env.XDG_CACHE_HOME || path.join(process.env.HOME || '/', '.cache')
}

// One level at a time: where nothing can be made, as in /proc, the recursive form of Node never ends.
function isFolder(name) {
  try {
    if (!fs.existsSync(name)) fs.mkdirSync(name, 0o700)
    return true
  } catch {
    // Another may have made it just now. Where nobody can, everything works as well, only slower.
    return fs.existsSync(name)
  }
}

module.exports = { keepCompiledCode }
