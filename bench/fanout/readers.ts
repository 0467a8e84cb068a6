/** Many readers of one event stream, and what each of them saw when. */
import { get } from 'node:http'
import type { ClientRequest } from 'node:http'

export interface Readers {
  /** From the instant in an event to its arrival at a reader, in ms, of every event and reader so far. */
  readonly delays: number[]
  /** Events that have arrived, at all readers together. */
  count(): number
  close(): void
}

const wallMs = () => performance.timeOrigin + performance.now()

/** Resolves when all of them are connected. */
export async function openReaders(url: string, headers: Record<string, string>, count: number): Promise<Readers> {
  const delays: number[] = []
  let arrived = 0
  const take = (frame: string) => {
    const at = /"at":"([^"]+)"/.exec(frame)?.[1]
    if (at === undefined) return
    arrived += 1
    delays.push(wallMs() - Date.parse(at))
  }
  const requests = await Promise.all(Array.from({ length: count }, () => openReader(url, headers, take)))
  return {
    delays,
    count: () => arrived,
    close: () => requests.forEach((request) => request.destroy()),
  }
}

function openReader(url: string, headers: Record<string, string>, take: (frame: string) => void) {
  return new Promise<ClientRequest>((resolve, reject) => {
    const request = get(url, { headers, agent: false }, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`a reader was answered ${response.statusCode}`))
      let rest = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        const frames = (rest + chunk).split('\n\n')
        rest = frames.pop() ?? ''
        frames.forEach(take)
      })
      response.on('error', () => {})
      resolve(request)
    })
    request.on('error', reject)
  })
}
