import type { ChannelConfig } from '../notify/open.ts'
import type { Path } from './json-text.ts'
import type { Complain } from './problem.ts'
import { readRecord, readText } from './read.ts'
import type { JsonRecord, Reader } from './read.ts'

const KINDS = ['webhook', 'ntfy', 'desktop'] as const

/** One way to a person: `{ "webhook": "https://…", "secret": "${VAR}" }`, `{ "ntfy": "https://…/topic" }`, `{ "desktop": true }`. */
export const readChannel: Reader<ChannelConfig> = (value, path, complain) => {
  const channel = readRecord(value, [...KINDS, 'secret', 'token'], path, complain)
  const [kind, second] = KINDS.filter((each) => channel[each] !== undefined)
  if (kind === undefined || second !== undefined)
    return complain(path, 'must name one way', 'write { "webhook": … }, { "ntfy": … } or { "desktop": true }')
  refuseStrays(kind, channel, path, complain)
  if (kind === 'desktop') return channel['desktop'] === true ? { kind } : onlyTrue([...path, kind], complain)
  const url = readAddress(channel[kind], [...path, kind], complain)
  if (kind === 'ntfy') {
    const token = channel['token'] === undefined ? undefined : readText(channel['token'], [...path, 'token'], complain)
    return url === undefined ? undefined : { kind, url, ...(token === undefined ? {} : { token }) }
  }
  const secret =
    channel['secret'] === undefined
      ? complain(path, 'has no "secret"', 'write "secret": "${NAME}", the name of a variable that both sides know')
      : readText(channel['secret'], [...path, 'secret'], complain)
  return url === undefined || secret === undefined ? undefined : { kind, url, secret }
}

const onlyTrue = (path: Path, complain: Complain) => complain(path, 'must be true', 'or leave it out')

function refuseStrays(kind: (typeof KINDS)[number], channel: JsonRecord, path: Path, complain: Complain): void {
  if (channel['secret'] !== undefined && kind !== 'webhook')
    complain([...path, 'secret'], 'is for a webhook', 'leave it out')
  if (channel['token'] !== undefined && kind !== 'ntfy') complain([...path, 'token'], 'is for ntfy', 'leave it out')
}

const readAddress: Reader<string> = (value, path, complain) => {
  const url = typeof value === 'string' ? URL.parse(value) : null
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '') return url.href
  return complain(path, 'is not an address', 'write it as "https://example.com/holdfast", without a password')
}
