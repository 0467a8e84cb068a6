import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SERVER_NAME, modelToolName } from './names.ts'

test('a plain name is kept, another is changed in a way that does not depend on its neighbours', () => {
  expect(modelToolName('files', 'read_file')).toBe('files__read_file')
  expect(modelToolName('files', 'read.file')).toMatch(/^files__read_file_[0-9a-f]{8}$/)
  expect(modelToolName('files', 'x'.repeat(200))).toHaveLength(64)
  expect(modelToolName('files', 'read.file')).not.toBe(modelToolName('files', 'read/file'))
})

const servers = fc.stringMatching(/^[aB][a_-]{0,4}$/).filter((name) => SERVER_NAME.test(name))

test('two tools never get one name, and every provider takes each', () => {
  const tools = fc.oneof(fc.string({ minLength: 1 }), fc.stringMatching(/^[_a]{1,4}$/))
  fc.assert(
    fc.property(servers, tools, servers, tools, (server, tool, otherServer, otherTool) => {
      const name = modelToolName(server, tool)
      expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
      if (server === otherServer && tool === otherTool) return
      expect(name).not.toBe(modelToolName(otherServer, otherTool))
    }),
    { numRuns: 2_000 },
  )
})

test.each(['a', 'my-server', 'a_b', 'B2'])('"%s" is a name for a server', (name) => {
  expect(SERVER_NAME.test(name)).toBe(true)
})

test.each(['', 'a__b', 'a_', '_a', '1a', 'a b', 'a/b', 'x'.repeat(33)])('"%s" is none', (name) => {
  expect(SERVER_NAME.test(name)).toBe(false)
})
