/** The limit: frames of the same size, written to every reader, with no store, no order and nobody checked. */
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const readers = new Set<ServerResponse>()
let seq = 0

function frameOfNext(): string {
  seq += 1
  const data = { messageId: 'msg_0123456789abcdef0123456789', kind: 'prompt' }
  const event = { seq, at: new Date().toISOString(), type: 'message.accepted', threadId: 'busy', data }
  return `id: ${seq}\ndata: ${JSON.stringify(event)}\n\n`
}

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('retry: 1000\n\n')
    readers.add(response)
    return
  }
  let left = Number(request.headers['x-count'] ?? 1)
  const some = () => {
    // As many in one write as the daemon puts into one.
    const frames = Array.from({ length: Math.min(left, 200) }, frameOfNext)
    left -= frames.length
    for (const reader of readers) reader.write(frames.join(''))
    if (left > 0) setImmediate(some)
    else response.end('{}')
  }
  request.resume().on('end', some)
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
