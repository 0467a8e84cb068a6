import { expect, test } from 'vitest'
import { MCP_LIMITS } from './limits.ts'
import { StdioTransport } from './stdio-transport.ts'

function listening() {
  const transport = new StdioTransport()
  const [messages, breaches]: [unknown[], string[]] = [[], []]
  const onmessage = (message: unknown) => void messages.push(message)
  Object.assign(transport, { onmessage, onBreach: (why: string) => void breaches.push(why) })
  return { transport, messages, breaches }
}

test('messages come in any pieces, between lines that are none', () => {
  const { transport, messages } = listening()
  const text = [
    'hello',
    '{"jsonrpc":"2.0","id":1,"result":{"ü":1}}',
    'null',
    '{"jsonrpc":"2.0","method":"x"}',
    '',
  ].join('\n')
  for (const byte of Buffer.from(text)) transport.take(Buffer.from([byte]))
  transport.take(Buffer.from(text))
  expect(messages).toHaveLength(4)
  expect(messages[0]).toEqual({ jsonrpc: '2.0', id: 1, result: { ü: 1 } })
})

test('a line without an end is given up at the limit, and said once for each', () => {
  const { transport, messages, breaches } = listening()
  const chunk = Buffer.alloc(1024 * 1024, 'x')
  for (let size = 0; size <= MCP_LIMITS.messageBytes; size += chunk.length) transport.take(chunk)
  expect(breaches).toHaveLength(1)
  expect(messages).toEqual([])
})

test('what cannot be written says that it was not sent', async () => {
  const { transport } = listening()
  await expect(transport.send({ jsonrpc: '2.0', method: 'x' })).rejects.toMatchObject({ code: 'tools/mcp-not-sent' })
})
