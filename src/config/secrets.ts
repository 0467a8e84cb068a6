import type { Declared } from '../secrets/gather.ts'
import { readRecord, readText } from './read.ts'
import type { Reader } from './read.ts'

const NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/

/** `{ "env": "GITHUB_TOKEN" }` or `{ "file": "/run/secrets/github" }`: where it is, never what it is. */
export const readSecret: Reader<Declared> = (value, path, complain) => {
  if (!NAME.test(String(path.at(-1)))) {
    complain(path, 'cannot be the name of a secret', 'use letters, digits, _ . and -, a letter first, 64 at most')
  }
  const { env, file } = readRecord(value, ['env', 'file'], path, complain)
  if ((env === undefined) === (file === undefined)) {
    return complain(path, 'must name one place', 'write { "env": "NAME" } or { "file": "/run/secrets/name" }')
  }
  const named = readText(env ?? file, [...path, env === undefined ? 'file' : 'env'], complain)
  if (named === undefined) return undefined
  return env === undefined ? { file: named } : { env: named }
}
