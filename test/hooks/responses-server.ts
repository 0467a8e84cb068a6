import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { onTestFinished } from 'vitest'

/** What Codex sent: the texts of its input, oldest first. */
export interface Request {
  readonly texts: readonly string[]
}

interface Body {
  readonly input: readonly { readonly content?: readonly { readonly text?: string }[] }[]
}

/** A model behind the Responses interface, on loopback. Whoever wants to hold Codex in its turn waits in the script. */
export async function startResponsesServer(script: (request: Request) => Promise<string>) {
  const asked: Request[] = []
  const answer = async (incoming: IncomingMessage, response: ServerResponse) => {
    let text = ''
    for await (const chunk of incoming.setEncoding('utf8')) text += chunk
    if (incoming.url?.endsWith('/responses') !== true) return void response.end('{}')
    const { input } = JSON.parse(text) as Body
    const request = { texts: input.flatMap(({ content }) => (content ?? []).flatMap((part) => part.text ?? [])) }
    asked.push(request)
    reply(response, asked.length, await script(request))
  }
  const server = createServer((incoming, response) => {
    answer(incoming, response).catch((error: unknown) => response.destroy(error as Error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked }
}

function reply(response: ServerResponse, number: number, text: string): void {
  const id = `resp_${number}`
  const item = { type: 'message', role: 'assistant', id: `msg_${number}`, content: [{ type: 'output_text', text }] }
  const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of [
    { type: 'response.created', response: { id } },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: { id, usage } },
  ]) {
    response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  }
  response.end()
}
