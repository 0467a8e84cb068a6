// Looks at an image. URL MODEL [KEY_FILE]: any endpoint that speaks the OpenAI chat protocol (https://host/v1). The key
// is in a file, because a tool's environment has no secrets.
import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'

import { answer, fetchJson } from './input.mjs'

const [url, model, keyFile] = process.argv.slice(2)
const TYPES = { '.png': 'image/png', '.jpg': 'image/jpeg', '.jpeg': 'image/jpeg', '.webp': 'image/webp' }

await answer(async ({ image, question = 'What is in this image?' }) => {
  const type = TYPES[extname(image).toLowerCase()]
  if (type === undefined) throw new Error(`${image} is none of ${Object.keys(TYPES).join(', ')}`)
  const data = `data:${type};base64,${await readFile(image, 'base64')}`
  const content = [
    { type: 'text', text: question },
    { type: 'image_url', image_url: { url: data } },
  ]
  const key = keyFile === undefined ? undefined : (await readFile(keyFile, 'utf8')).trim()
  const { choices } = await fetchJson(`${url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
    body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
  })
  return choices[0].message.content
})
