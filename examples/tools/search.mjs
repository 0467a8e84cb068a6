// Web search. ENDPOINT: the address of a SearXNG (https://searx.example/search) or anything with the same answers.
import { answer, fetchJson } from './input.mjs'

const [endpoint] = process.argv.slice(2)

await answer(async ({ query, limit = 10 }) => {
  const { results = [] } = await fetchJson(`${endpoint}?${new URLSearchParams({ q: query, format: 'json' })}`)
  return results.slice(0, limit).map(({ title, url, content }) => ({ title, url, content }))
})
