import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Server as SecureServer } from 'node:https'
import type { Socket } from 'node:net'

import { LIMITS } from '../base/limits.ts'

/**
 * Who may hold a connection. Somebody who opens thousands and says nothing, or says it slowly, must not keep others out: when
 * there are too many, the oldest that has no whole request under way is closed for the newest. Whoever asks quickly is served.
 */
export class Admission {
  /** In the order in which they came. The value: the request under way. */
  readonly #sockets = new Map<Socket, IncomingMessage | undefined>()

  attach(server: Server | SecureServer): void {
    server.on(server instanceof SecureServer ? 'secureConnection' : 'connection', (socket: Socket) =>
      this.#admit(socket),
    )
    server.on('request', (request: IncomingMessage, response: ServerResponse) => this.#begin(request, response))
  }

  #admit(socket: Socket): void {
    this.#sockets.set(socket, undefined)
    socket.once('close', () => this.#sockets.delete(socket))
    if (this.#sockets.size > LIMITS.connections) this.#longestIdle(socket).destroy()
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    if (!this.#sockets.has(socket)) return
    this.#sockets.set(socket, request)
    response.once('close', () => {
      if (this.#sockets.get(socket) === request) this.#sockets.set(socket, undefined)
    })
  }

  /** Without a request; else with one that is not all there yet; else the one that came last. */
  #longestIdle(newest: Socket): Socket {
    let slow: Socket | undefined
    for (const [socket, request] of this.#sockets) {
      if (socket === newest) continue
      if (request === undefined) return socket
      if (!request.complete) slow ??= socket
    }
    return slow ?? newest
  }
}
