import type { OnceWindow } from '../actions/window.ts'
import { readDuration, readOneOf, readRecord } from './read.ts'
import type { Reader } from './read.ts'

const SCOPES = ['thread', 'agent'] as const

/** `once` beyond one run. */
export const readOnce: Reader<OnceWindow> = (value, path, complain) => {
  const once = readRecord(value, ['per', 'within'], path, complain)
  const per = readOneOf(SCOPES)(once['per'], [...path, 'per'], complain)
  const withinMs = readDuration(once['within'], [...path, 'within'], complain)
  return per === undefined || withinMs === undefined ? undefined : { per, withinMs }
}
