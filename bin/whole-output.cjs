/*
 * Into a file Node makes one write and does not look how much of it was taken: on a disk that is filling up that is what
 * fits, and no error. Whoever gave the rest away as printed has lost it. So it is written to its end: the next write says
 * that there is no room. Read by a Node that may be too old, as the launcher is: the same rules hold.
 */
/* oxlint-disable unicorn/prefer-node-protocol -- a Node from 2019 does not know it. */
'use strict'

const fs = require('fs')

/** For `process.stdout` or `process.stderr`. Pipes and terminals are written to their end by Node itself. */
function writeWhole(stream) {
  if (!isFile(stream.fd)) return
  // oxlint-disable-next-line no-underscore-dangle -- what a stream calls for each piece, by Node's own name for it.
  stream._write = (chunk, encoding, done) => {
    try {
      writeAll(stream.fd, Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk, encoding))
    } catch (error) {
      return done(error)
    }
    done()
  }
}

// One that was closed before we began is none.
function isFile(fd) {
  try {
    return fs.fstatSync(fd).isFile()
  } catch {
    return false
  }
}

function writeAll(fd, bytes) {
  for (let at = 0; at < bytes.length;) {
    const taken = fs.writeSync(fd, bytes, at)
    if (taken === 0) throw new Error('the file takes nothing more')
    at += taken
  }
}

module.exports = { writeWhole }
