import type { TelemetrySettings } from '../telemetry/wanted.ts'
import { readFlag, readRecord } from './read.ts'
import type { Reader } from './read.ts'

/** `true`, `false`, or `{ "content": true }`. */
export const readTelemetry: Reader<TelemetrySettings | false> = (value, path, complain) => {
  if (typeof value === 'boolean') return value && { content: false }
  const { content } = readRecord(value, ['content'], path, complain)
  return { content: content === undefined ? false : (readFlag(content, [...path, 'content'], complain) ?? false) }
}
