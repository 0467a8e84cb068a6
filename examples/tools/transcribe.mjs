// Writes down what is said in a recording. URL MODEL [KEY_FILE]: any endpoint with OpenAI's audio/transcriptions
// (https://host/v1), a whisper.cpp server for instance.
import { openAsBlob } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'

import { answer, fetchJson } from './input.mjs'

const [url, model, keyFile] = process.argv.slice(2)

await answer(async ({ recording, language }) => {
  const form = new FormData()
  form.set('file', await openAsBlob(recording), basename(recording))
  form.set('model', model)
  if (language !== undefined) form.set('language', language)
  const key = keyFile === undefined ? undefined : (await readFile(keyFile, 'utf8')).trim()
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
  const { text } = await fetchJson(`${url}/audio/transcriptions`, { method: 'POST', headers, body: form })
  return text
})
