import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

import { openModel } from './providers.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-providers-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** A provider that is installed beside a configuration and says what it was asked for. */
function install(name: string, create: string): string {
  const project = mkdtempSync(join(folder, 'project-'))
  const place = join(project, 'node_modules', name)
  mkdirSync(place, { recursive: true })
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name, type: 'module', exports: './index.js' }))
  const program = `export const ${create} = (settings) => (model) => ({
    doStream: () => Promise.reject(new Error(JSON.stringify({ settings, model }))) })`
  writeFileSync(join(place, 'index.js'), program)
  return project
}

const request = { system: '', messages: [], tools: [], replies: 0, purpose: 'turn' } as const
const signal = new AbortController().signal

test('a scripted model is read from beside its configuration and keeps the name it has there', async () => {
  writeFileSync(join(folder, 'clerk.json'), '{ "replies": [ { "text": "hello" } ] }')
  const model = await openModel('scripted:./clerk.json', folder)
  expect(model.id).toBe('scripted:./clerk.json')
  expect(await model.generate(request, { signal })).toMatchObject({ text: 'hello' })
})

test.each([
  ['openai-compatible:http://127.0.0.1:11434/v1/llama', 'http://127.0.0.1:11434/v1', 'llama'],
  ['openai-compatible:https://host/api/v1/org/name', 'https://host/api/v1', 'org/name'],
  ['openai-compatible:https://host/models/name', 'https://host/models', 'name'],
])('%s: the address and the model', async (id, baseURL, name) => {
  const project = install('@ai-sdk/openai-compatible', 'createOpenAICompatible')
  const model = await openModel(id, project, { apiKey: 'k' })
  expect(model).toMatchObject({ id, quota: `openai-compatible:${baseURL}` })
  const told = JSON.stringify({
    settings: { name: model.quota, includeUsage: true, apiKey: 'k', baseURL },
    model: name,
  })
  await expect(model.generate(request, { signal })).rejects.toThrow(told)
})

test.skipIf(isInstalled('@ai-sdk/openai'))(
  'a package that is missing is named with the command that brings it',
  async () => {
    await expect(openModel('openai/gpt-6', folder)).rejects.toMatchObject({
      code: 'model/no-provider',
      message: expect.stringContaining('@ai-sdk/openai'),
      remedy: 'npm install @ai-sdk/openai@4',
    })
  },
)

test.each(['', 'claude', 'anthropic/', 'mystery/model', 'openai-compatible:model', 'scripted:'])(
  '"%s" is no model, and the known forms are told',
  async (id) => {
    await expect(openModel(id, folder)).rejects.toMatchObject({
      code: 'model/no-provider',
      remedy: expect.stringContaining('scripted:PATH'),
    })
  },
)

function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name)
    return true
  } catch {
    return false
  }
}
