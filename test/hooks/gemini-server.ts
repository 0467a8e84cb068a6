import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { onTestFinished } from 'vitest'

/** A model behind Gemini's interface, on loopback. Whoever wants to hold Gemini CLI in its turn waits in the script. */
export async function startGeminiServer(script: (contents: string, number: number) => Promise<string>) {
  const asked: string[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    if (request.url?.includes('streamGenerateContent') !== true) return void response.end('{}')
    const contents = JSON.stringify((JSON.parse(text) as { contents: unknown }).contents)
    asked.push(contents)
    const words = await script(contents, asked.length)
    const content = { role: 'model', parts: [{ text: words }] }
    const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 3, totalTokenCount: 8 }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(
      `data: ${JSON.stringify({ candidates: [{ content, finishReason: 'STOP', index: 0 }], usageMetadata })}\r\n\r\n`,
    )
  }
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}
