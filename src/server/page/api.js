/** The daemon, as this page knows it: requests with the token, and its stream of events. */

const TOKEN = 'holdfast-token'

/** The address that `holdfast up` prints has the token behind `#`: it reaches no server, no log and no other page. */
export function takeToken() {
  const found = /^#token=(.+)$/.exec(location.hash)
  if (found !== null) {
    sessionStorage.setItem(TOKEN, decodeURIComponent(found[1]))
    history.replaceState(null, '', location.pathname)
  }
  return sessionStorage.getItem(TOKEN)
}

export const keepToken = (token) => sessionStorage.setItem(TOKEN, token)
export const dropToken = () => sessionStorage.removeItem(TOKEN)

/** What the daemon answered, in its own words. `code` is undefined when nobody answered. */
export class Problem extends Error {
  constructor(message, status, code) {
    super(message)
    this.status = status
    this.code = code
  }
}

const headers = (more = {}) => ({ Authorization: `Bearer ${sessionStorage.getItem(TOKEN) ?? ''}`, ...more })

async function request(path, options) {
  let response
  try {
    response = await fetch(`/api/v1${path}`, { ...options, cache: 'no-store' })
  } catch {
    throw new Problem('the daemon does not answer', 0)
  }
  if (!response.ok) throw await problemOf(response)
  return response
}

async function problemOf(response) {
  const { error } = await response.json().catch(() => ({}))
  const sentence = [error?.message ?? `status ${response.status}`, error?.remedy].filter(Boolean).join('; ')
  return new Problem(sentence, response.status, error?.code)
}

export const get = async (path) => (await request(path, { headers: headers() })).json()

export const post = async (path, body) =>
  (
    await request(path, {
      method: 'POST',
      headers: headers({ 'Content-Type': 'application/json' }),
      body: JSON.stringify(body),
    })
  ).json()

/** The daemon speaks at least every 15 s; a connection that has been silent for three times that is dead. */
const SILENCE_MS = 45_000

/** Frames of the stream after an event. Ends when the daemon does; whoever reads it begins again where it was. */
export async function* follow(after) {
  const stop = new AbortController()
  let timer = 0
  const alive = () => {
    clearTimeout(timer)
    timer = setTimeout(() => stop.abort(), SILENCE_MS)
  }
  try {
    alive()
    const response = await request('/events', {
      headers: headers({ 'Last-Event-ID': String(after) }),
      signal: stop.signal,
    })
    yield { kind: 'open' }
    yield* framesOf(response.body.pipeThrough(new TextDecoderStream()), alive)
  } finally {
    clearTimeout(timer)
    stop.abort()
  }
}

async function* framesOf(texts, alive) {
  let rest = ''
  for await (const chunk of texts) {
    alive()
    const frames = (rest + chunk).split('\n\n')
    rest = frames.pop() ?? ''
    for (const frame of frames) {
      const fields = Object.fromEntries(frame.split('\n').map((line) => line.split(/: (.*)/s, 2)))
      if (fields.data === undefined) continue
      yield { kind: fields.event === 'text' ? 'text' : 'event', data: JSON.parse(fields.data) }
    }
  }
}
