import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { onTestFinished } from 'vitest'

export interface Received {
  readonly path: string
  readonly method: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

/** A receiver of webhooks: what it answers is in the path. */
export class Receiver {
  readonly received: Received[] = []
  readonly #server: Server
  readonly #held: ServerResponse[] = []

  private constructor() {
    this.#server = createServer((request, response) => void this.#receive(request, response))
  }

  static async open(): Promise<Receiver> {
    const receiver = new Receiver()
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => receiver.close())
    return receiver
  }

  url(path: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`
  }

  at(path: string): Received[] {
    return this.received.filter((each) => each.path === path)
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const chunk of request as AsyncIterable<Buffer>) body += chunk.toString()
    const { url: path = '', method = '', headers } = request
    this.received.push({ path, method, headers, body })
    if (path.startsWith('/hold')) return void this.#held.push(response)
    if (path.startsWith('/cut')) return void request.socket.destroy()
    // `/503/200`: the first time so, then so.
    const answers = path.split('/').slice(1).map(Number)
    const status = answers[Math.min(this.at(path).length, answers.length) - 1] ?? 200
    response.writeHead(status, status === 302 ? { location: 'http://example.com/' } : {}).end(`this is ${status}`)
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** An address where nobody listens. Below those that the system gives away: a port that was just free is soon somebody's. */
export const nobody = (): string => 'http://127.0.0.1:2/'
