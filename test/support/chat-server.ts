import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { onTestFinished } from 'vitest'

export interface ChatRequest {
  readonly messages: readonly { readonly role: string; readonly content?: unknown }[]
  readonly tools?: readonly unknown[]
}

export interface ChatReply {
  readonly text?: string
  readonly call?: readonly [tool: string, input: unknown]
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly cachedTokens?: number
}

/** A provider on loopback that speaks OpenAI's chat completions. Without a reply the request is left hanging. */
export async function chatServer(answer: (request: ChatRequest) => ChatReply | undefined): Promise<string> {
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
    request.on('end', () => {
      const reply = answer(JSON.parse(body) as ChatRequest)
      if (reply !== undefined) stream(response, reply)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return `http://127.0.0.1:${port}/v1`
}

let calls = 0

function stream(response: ServerResponse, { text = '', call, ...tokens }: ChatReply): void {
  const [name, input] = call ?? []
  const asked = {
    index: 0,
    id: `call_${++calls}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(input) },
  }
  const delta = { role: 'assistant', content: text, ...(call === undefined ? {} : { tool_calls: [asked] }) }
  const usage = {
    prompt_tokens: tokens.inputTokens ?? 0,
    completion_tokens: tokens.outputTokens ?? 0,
    prompt_tokens_details: { cached_tokens: tokens.cachedTokens ?? 0 },
  }
  const finish = call === undefined ? 'stop' : 'tool_calls'
  const chunks = [
    { delta, finish_reason: null },
    { delta: {}, finish_reason: finish },
  ].map((choice) => ({
    id: 'chat_1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'test',
    choices: [{ index: 0, ...choice }],
    ...(choice.finish_reason === null ? {} : { usage }),
  }))
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end([...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]'].map((data) => `data: ${data}\n\n`).join(''))
}
