import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

import { onTestFinished } from 'vitest'

const message = (letter: string, body: Buffer): Buffer => {
  const head = Buffer.alloc(5)
  head.write(letter)
  head.writeUInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
const int16 = (value: number) => Buffer.from([value >> 8, value & 255])
const int32 = (value: number) => Buffer.from([value >>> 24, (value >> 16) & 255, (value >> 8) & 255, value & 255])

const READY = message('Z', Buffer.from('I'))
const WELCOME = Buffer.concat([message('R', int32(0)), READY])
const COLUMN = [Buffer.from('version\0'), int32(0), int16(0), int32(25), int16(65_535), int32(0), int16(0)]

/** Enough of PostgreSQL's protocol to say one's age to whoever asks anything. */
export async function serverOfVersion(version: string): Promise<string> {
  const cell = Buffer.from(version)
  const answer = Buffer.concat([
    message('T', Buffer.concat([int16(1), ...COLUMN])),
    message('D', Buffer.concat([int16(1), int32(cell.length), cell])),
    message('C', Buffer.from('SELECT 1\0')),
    READY,
  ])
  return listening((socket) => {
    socket.once('data', () => {
      socket.write(WELCOME)
      socket.on('data', () => socket.write(answer))
    })
  })
}

/** Takes the call and never says a word. */
export const silentServer = (): Promise<string> => listening(() => {})

async function listening(serve: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    serve(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `postgres://someone@127.0.0.1:${(server.address() as AddressInfo).port}/somewhere`
}
